"""parse ∘ print is the identity for every query."""

from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.errors import QueryTextError
from slackwater.language import Extent, Late, Measure, Precision, Query, UsingOption, Window, parse, print_query
from slackwater.names import quoted

names = st.sampled_from(["ts", "orderID", "late", "range", "the column", "host", "a`b", "ünï"])
times = st.integers(1, 10**12).map(lambda us: Extent(us / 1000, Measure.TIME))
tuples = st.integers(0, 10**9).map(lambda n: Extent(n, Measure.TUPLES))
numbers = st.one_of(st.integers(1, 10**15), st.floats(1e-3, 1e9)).map(lambda n: Extent(n, Measure.NUMBER))
extents = st.one_of(times, tuples, numbers)
ratios = st.floats(0, 1, exclude_max=True, allow_subnormal=False).filter(lambda x: x == 0 or x > 1e-12)
columns = st.lists(names, min_size=1, max_size=3, unique=True).map(tuple)
windows = st.builds(
    Window,
    range=st.one_of(st.none(), extents),
    slide=st.one_of(st.none(), extents),
    landmark=st.one_of(st.none(), st.sampled_from(["2024-01-01 00:00:00", "it's", "back\\slash"]), st.integers(-9, 9)),
    attribute=st.one_of(st.none(), names),
    per=st.one_of(st.just(()), columns),
    slack=st.one_of(st.none(), tuples, times),
    drop_ratio=st.one_of(st.none(), ratios),
    delay_ms=st.one_of(st.none(), times.map(lambda extent: extent.amount)),
    after_where=st.booleans(),
    shed_by=st.one_of(st.none(), names.map(quoted), st.sampled_from(["amount * 2", "IF(a > 0, b[0], (1 - c))"])),
    arrival=st.one_of(st.none(), names),
    sources=st.one_of(st.just(()), columns),
    heartbeat=st.one_of(st.none(), names),
    late=st.one_of(st.none(), st.sampled_from(Late)),
).filter(lambda window: window != Window())
bodies = st.sampled_from(
    [
        "SELECT MAX(v) FROM S",
        "SELECT k, AVG(v) AS a FROM db.S AS s WHERE v > 0 GROUP BY k HAVING COUNT(*) > 3",
        "SELECT m['x'], a[0], COUNT(DISTINCT v) FROM S JOIN names AS n ON n.id = S.id GROUP BY ALL",
        "WITH x AS (SELECT COUNT(*) AS c FROM S) SELECT c + 1 FROM x",
        "SELECT c FROM (SELECT SUM(v) FILTER(WHERE v > 1) AS c FROM `the stream`)",
    ]
)
options = {
    "method": st.sampled_from(["calibrated", "brownian"]),
    "k": st.integers(0, 10**6),
    "t_max": times.map(lambda extent: extent.amount),
    "while_interrupted": times.map(lambda extent: extent.amount),
    "capacity": st.integers(0, 10**6),
    "order": st.sampled_from(["edf", "least-penalty", "fifo"]),
    "value_and_drift": st.just(True),
    "sum_of_errors": st.just(True),
}
using = st.lists(st.sampled_from(sorted(options)), max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(UsingOption, st.just(name), options[name]) for name in names))
)
precisions = st.one_of(
    st.none(),
    st.builds(Precision, ratios.filter(lambda x: x > 0), st.booleans(), ratios.filter(lambda x: x > 0), using),
)


@settings(max_examples=300, deadline=None)
@given(bodies, windows, precisions, st.booleans())
def test_a_printed_query_parses_to_the_same_query(
    body: str, window: Window, precision: Precision | None, with_error: bool
) -> None:
    bare = parse(body)
    index = next(i for i, table in enumerate(bare.tables()) if table.name in ("S", "the stream"))
    query = Query(bare.select, ((index, window),), precision, with_error)
    text = print_query(query)
    assert parse(text) == query
    assert print_query(parse(text)) == text


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("[]%,'`() \nRANGESLIDWTfromselect0123456789.*+-;"), max_size=80))
def test_every_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse(f"SELECT MAX(v) FROM S {text}")
    except QueryTextError as error:
        assert "line" in str(error)
