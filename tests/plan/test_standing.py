"""Standing queries: how a text with WITHIN is decomposed, explained and refused."""

from __future__ import annotations

import pytest

from slackwater.control.deferral import Deferral
from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Catalog, explain_standing
from slackwater.plan.standing import COUNTED, StandingShape, standing_shape

COLUMNS = ["symbol", "ts", "price", "floor"]


def shape(text: str, value: str | None = "price") -> StandingShape:
    return standing_shape(parse(text), "Prices", COLUMNS, value)


def test_weights_from_a_joined_table() -> None:
    found = shape(
        "SELECT portfolio, SUM(weight * price) FROM Prices JOIN Holdings USING (symbol) GROUP BY portfolio "
        "WITHIN 1% CONFIDENCE 90%"
    )
    assert (found.table, found.join, found.keys) == ("Holdings", ("symbol", "symbol"), (("portfolio", "portfolio"),))
    assert (found.weight, found.value, found.bound, found.confidence) == ("1.0D * (weight)", "price", "1.0%", 0.9)


def test_columns_and_tables_may_be_qualified() -> None:
    found = shape(
        "SELECT h.portfolio AS pf, SUM(-p.price * h.weight / 2) AS worth FROM Prices p JOIN Holdings h "
        "ON h.sym = p.symbol WHERE h.active AND p.price > 0 GROUP BY h.portfolio WITHIN 2 CONFIDENCE 95%"
    )
    assert (found.join, found.keys, found.result) == (("sym", "symbol"), (("pf", "portfolio"),), "worth")
    assert found.weight == "1.0D * (-1) * (weight) / (2)"
    assert (found.stream_filter, found.table_filter) == ("(price > 0)", "(active)")


def test_without_a_table_streams_that_pass_the_filter_are_members() -> None:
    found = shape("SELECT AVG(price) FROM Prices WHERE floor = 3 WITHIN 2 CONFIDENCE 95%")
    assert (found.table, found.average, found.extreme, found.stream_filter) == (None, True, None, "(floor = 3)")


def test_count_counts_streams() -> None:
    found = shape("SELECT floor, COUNT(*) AS n FROM Prices GROUP BY floor WITHIN 0.5 CONFIDENCE 95%")
    assert (found.value, found.weight, found.counts, found.average, found.single_stream) == (
        COUNTED, "1.0D", "1.0D", False, False,
    )  # fmt: skip
    found = shape("SELECT MAX(COUNT(price)) FROM Prices [RANGE 1 hour] WITHIN 1 CONFIDENCE 95%")
    assert (found.counts, found.extreme) == ("CASE WHEN price IS NOT NULL THEN 1.0D END", "max")


def test_extremes_need_a_range_or_a_landmark() -> None:
    found = shape("SELECT MAX(AVG(price)) FROM Prices [RANGE 30 minutes] WITHIN 2 CONFIDENCE 95%")
    assert (found.extreme, found.window_ms, found.average, found.single_stream) == ("max", 1_800_000.0, True, False)
    found = shape(
        "SELECT floor, MIN(SUM(price)) AS low FROM Prices [LANDMARK '2024-01-01 00:00:00'] GROUP BY floor "
        "WITHIN 2% CONFIDENCE 95%"
    )
    assert (found.extreme, found.landmark, found.keys) == ("min", "2024-01-01 00:00:00", (("floor", "floor"),))
    assert shape("SELECT MAX(price) FROM Prices [RANGE 1 hour] WITHIN 2 CONFIDENCE 95%").single_stream


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT STDDEV(price) FROM Prices", "neither a linear aggregate nor an extreme"),
        ("SELECT COUNT(DISTINCT symbol) FROM Prices", "does not count streams"),
        ("SELECT COUNT(*) FROM Prices [RANGE 1 hour]", "take the newest values and no window"),
        ("SELECT MAX(AVG(price)) FROM Prices", "need a window"),
        ("SELECT AVG(price) FROM Prices [RANGE 1 hour]", "take the newest values and no window"),
        ("SELECT AVG(price), SUM(price) FROM Prices", "one aggregate, not 2"),
        ("SELECT floor, AVG(price) FROM Prices", "neither grouped by nor aggregated"),
        ("SELECT AVG(price) FROM Prices GROUP BY floor", "of GROUP BY is not selected"),
        ("SELECT SUM(price * price) FROM Prices", "is not price times a weight"),
        ("SELECT SUM(1 / price) FROM Prices", "is not price times a weight"),
        ("SELECT SUM(price * floor) FROM Prices", "belongs to the stream and cannot be a weight"),
        ("SELECT SUM(price) FROM Prices ORDER BY 1", "cannot have ORDER BY"),
        ("SELECT MAX(AVG(price)) FROM Prices [RANGE 1 hour SLACK 5]", "SLACK cannot be combined with WITHIN"),
        ("SELECT MAX(AVG(price)) FROM Prices [RANGE 10 tuples]", "must be a time"),
        ("SELECT SUM(price) FROM Prices LEFT JOIN Holdings USING (symbol)", "plain JOIN"),
        ("SELECT SUM(price) FROM Prices JOIN Holdings ON price > weight", "not on one key"),
        ("SELECT SUM(price) FROM Prices JOIN H USING (symbol) WHERE price > weight", "mixes the stream"),
        ("SELECT floor, SUM(price) FROM Prices JOIN H USING (symbol) GROUP BY floor", "belongs to the stream"),
        ("SELECT COUNT(*) FROM Prices WHERE price > (SELECT AVG(price) FROM Prices)", "cannot contain a query"),
        ("SELECT AVG(price) FROM (SELECT * FROM Prices WHERE floor = 1)", "cannot contain a query"),
        ("SELECT AVG(a.price) FROM Prices [DRATIO 1%] AS a JOIN B [DRATIO 1%] AS b ON a.symbol = b.symbol", "'Joined'"),
    ],
)
def test_other_queries_are_refused(text: str, problem: str) -> None:
    with pytest.raises(QueryTextError, match="not-standing") as refused:
        shape(f"{text} WITHIN 2 CONFIDENCE 95%")
    assert problem in str(refused.value)


def test_with_error_is_refused() -> None:
    with pytest.raises(QueryTextError, match="remove WITH ERROR"):
        shape("SELECT AVG(price) FROM Prices WITH ERROR WITHIN 2 CONFIDENCE 95%")


def test_explain_needs_no_spark() -> None:
    catalog = Catalog.from_sql("CREATE TABLE Prices (symbol STRING, ts TIMESTAMP, price DOUBLE)")
    text = "SELECT pf, MAX(SUM(w * price)) FROM Prices [RANGE 1 hour] JOIN H USING (symbol) GROUP BY pf"
    query = parse(f"{text} WITHIN 1% CONFIDENCE 90%")
    text = explain_standing(query, catalog)
    assert "aggregate   max of the sum of price\nwindow      the last " in text
    assert "weights     H, by symbol: 1.0D * (w)" in text
    with pytest.raises(QueryTextError, match="is not known"):
        explain_standing(query, Catalog())


def test_using_gives_every_deferral_option() -> None:
    found = shape(
        "SELECT SUM(price) FROM Prices WITHIN 2 CONFIDENCE 95% USING (method economical, k 200, t_max 1 minute, "
        "while_interrupted 5 seconds, capacity 30, order edf, value_and_drift, sum_of_errors)"
    )
    assert found.deferral == Deferral(
        "economical",
        k=200,
        t_max=60,
        while_interrupted=5,
        capacity=30,
        order="edf",
        value_and_drift=True,
        sum_of_errors=True,
    )
    assert shape("SELECT SUM(price) FROM Prices WITHIN 2 CONFIDENCE 95%").deferral is None


@pytest.mark.parametrize(
    ("option", "condition"),
    [
        ("k 2", "invalid-k"),
        ("order lottery", "unknown-order"),
        ("method guess", "unknown-deferral-method"),
        ("capacity 0", "invalid-capacity"),
        ("t_max 0 seconds", "invalid-t-max"),
        ("value_and_drift", "drift-of-extreme"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused_where_it_stands(option: str, condition: str) -> None:
    with pytest.raises(QueryTextError, match=rf"\[{condition}\]") as refused:
        shape(f"SELECT MAX(price) FROM Prices [RANGE 1 hour] WITHIN 2 CONFIDENCE 95% USING (sum_of_errors, {option})")
    *_, line, carets = str(refused.value).splitlines()
    assert line[carets.find("^") : carets.rfind("^") + 1] == option


def test_other_promises_stand_in_the_brackets() -> None:
    found = shape(
        "SELECT AVG(price) FROM Prices [DRATIO 1% DELAY 2 seconds ARRIVAL seen SOURCE host] WITHIN 2 CONFIDENCE 95%"
    )
    assert (found.drop_ratio, found.delay_ms, found.arrival, found.sources) == (0.01, 2000.0, "seen", ("host",))
    assert found.window_ms is None
