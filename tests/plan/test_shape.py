"""Decomposition of a SELECT: keys, aggregates, outputs, HAVING, and what is refused."""

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Path, Plan, Shape, make_plan
from slackwater.plan.shape import decompose_select

WINDOW = "[RANGE 5 minutes SLIDE 1 minute WATTR ts]"


def plan_of(text: str) -> tuple[Plan, Shape]:
    plan = make_plan(parse(text))
    assert plan.shape is not None
    return plan, plan.shape


@pytest.mark.parametrize(
    ("selected", "group"),
    [
        ("sensor", "sensor"),
        ("s.sensor", "sensor"),
        ("sensor", "s.sensor"),
        ("Sensor", "sensor"),
        ("sensor", "1"),
        ("sensor", "ALL"),
    ],
)
def test_a_key_may_be_named_with_or_without_its_table(selected: str, group: str) -> None:
    _, shape = plan_of(f"SELECT {selected}, COUNT(*) AS n FROM Sensors {WINDOW} AS s GROUP BY {group}")
    assert shape.outputs[0][1] == "__sw_key_0"
    assert shape.outputs[1][1] == "(aggregate_0)"


def test_a_key_may_be_an_expression() -> None:
    _, shape = plan_of(f"SELECT value % 2 AS odd, 1 + MAX(value) FROM S {WINDOW} GROUP BY odd")
    assert shape.keys == ("value % 2",)
    assert [sql for _, sql in shape.outputs] == ["__sw_key_0", "1 + (aggregate_0)"]


def test_a_key_matches_in_any_case_and_by_its_fields() -> None:
    _, shape = plan_of(
        f"SELECT UPPER(`Sensor`), payload.kind, s.payload.more.x, COUNT(*) FROM S {WINDOW} AS s "
        "GROUP BY upper(sensor), s.payload"
    )
    assert [sql for _, sql in shape.outputs] == [
        "__sw_key_0",
        "__sw_key_1.kind",
        "__sw_key_1.more.x",
        "(aggregate_0)",
    ]


def test_join_hints_are_kept() -> None:
    _, shape = plan_of(
        "WITH n AS (SELECT * FROM names) "
        f"SELECT /*+ broadcast(n), MERGE(S, n) */ COUNT(*) FROM S {WINDOW} JOIN n USING (k)"
    )
    assert shape.selecting("k", "view").startswith("SELECT /*+ BROADCAST(n), MERGE(S, n) */ k FROM view AS `S` JOIN (")


@pytest.mark.parametrize(
    ("hint", "word"),
    [
        ("COALESCE(1)", "COALESCE"),
        ("repartition(4, k)", "repartition"),
        ("REPARTITION_BY_RANGE(k)", "REPARTITION_BY_RANGE"),
        ("MERGE(n), rebalance", "rebalance"),
    ],
)
def test_repartitioning_hints_are_refused(hint: str, word: str) -> None:
    with pytest.raises(QueryTextError, match="not-in-a-stream") as refused:
        make_plan(parse(f"SELECT /*+ {hint} */ COUNT(*) FROM S {WINDOW}"))
    *_, line, carets = str(refused.value).splitlines()
    assert line[carets.find("^") :].startswith(word) and carets.count("^") == len(word)


def test_having_may_name_an_output() -> None:
    plan, shape = plan_of(f"SELECT COUNT(*) AS n FROM S {WINDOW} HAVING n > 3 AND MAX(v) > 1")
    assert shape.having == "((aggregate_0)) > 3 AND (aggregate_1) > 1"
    assert [aggregate.sql for aggregate in plan.aggregates] == ["COUNT(*)", "MAX(v)"]


def test_an_aggregate_that_is_used_twice_is_computed_once() -> None:
    plan, _ = plan_of(f"SELECT SUM(v), SUM(v) / COUNT(*) FROM S {WINDOW} HAVING SUM(v) > 0")
    assert [aggregate.sql for aggregate in plan.aggregates] == ["SUM(v)", "COUNT(*)"]


def test_the_outer_query_reads_the_result() -> None:
    _, shape = plan_of(f"WITH w AS (SELECT COUNT(*) AS n FROM S {WINDOW}) SELECT n + 1 FROM w WHERE n > 2")
    assert shape.outer is not None
    assert shape.outer.fill("result") == "WITH w AS (SELECT * FROM result) SELECT n + 1 FROM w WHERE n > 2"


def test_joins_and_where_are_kept_in_the_source() -> None:
    _, shape = plan_of(
        f"SELECT COUNT(*) FROM S {WINDOW} JOIN n ON n.id = S.id WHERE v > 1 AND n.x IN (SELECT y FROM z)"
    )
    assert shape.source.fill("stream") == (
        "FROM stream AS `S` JOIN n ON n.id = S.id WHERE v > 1 AND n.x IN (SELECT y FROM z)"
    )


def test_last_uses_the_windowing_attribute_on_the_plain_route() -> None:
    plan, shape = plan_of(f"SELECT LAST(v), PERCENTILE(v, 0.5) FROM S {WINDOW}")
    assert not plan.in_panes
    assert shape.plain_outputs[0][1] == "(MAX(NAMED_STRUCT('at', `S`.`ts`, 'value', v)).value)"


@pytest.mark.parametrize("text", ["SUM(DISTINCT v)", "COUNT(DISTINCT v, w)"])
def test_distinct_aggregates_are_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="not-in-a-stream"):
        make_plan(parse(f"SELECT {text} FROM S {WINDOW}"))


def test_a_name_in_an_aggregate_is_a_column_of_the_input() -> None:
    plan, shape = plan_of(f"SELECT sensor, MAX(value) AS value FROM S {WINDOW} GROUP BY sensor HAVING MAX(value) > 3")
    assert [aggregate.sql for aggregate in plan.aggregates] == ["MAX(value)"]
    assert shape.having == "(aggregate_0) > 3"


def test_subqueries_are_not_rewritten() -> None:
    plan, shape = plan_of(
        f"SELECT COUNT(*) AS n, (SELECT MAX(x) FROM names) AS most FROM S {WINDOW} "
        "HAVING COUNT(*) > (SELECT COUNT(*) FROM names)"
    )
    assert [aggregate.sql for aggregate in plan.aggregates] == ["COUNT(*)"]
    assert shape.having == "(aggregate_0) > (SELECT COUNT(*) FROM names)"
    assert shape.outputs[1] == ("most", "(SELECT MAX(x) FROM names)")


@pytest.mark.parametrize(
    "text",
    [
        f"WITH n AS (SELECT * FROM names) SELECT COUNT(*) FROM S {WINDOW} JOIN n ON n.id = S.id",
        f"WITH n AS (SELECT * FROM names), w AS (SELECT COUNT(*) FROM S {WINDOW} JOIN n ON n.id = S.id) "
        "SELECT * FROM w JOIN n",
    ],
)
def test_a_static_cte_may_be_joined(text: str) -> None:
    _, shape = plan_of(text)
    assert shape.source.fill("stream") == ("FROM stream AS `S` JOIN (SELECT * FROM names) AS `n` ON n.id = S.id")


def test_a_cte_is_inlined_with_the_ctes_it_reads() -> None:
    _, shape = plan_of(
        "WITH names AS (SELECT * FROM names), n(a) AS (SELECT id FROM names) "
        f"SELECT COUNT(*) FROM S {WINDOW} JOIN n AS m ON m.a = S.id HAVING COUNT(*) > (SELECT COUNT(*) FROM names)"
    )
    read = "(SELECT * FROM names) AS `names`"
    assert shape.source.fill("stream") == f"FROM stream AS `S` JOIN (SELECT id FROM {read}) AS `m`(a) ON m.a = S.id"
    assert shape.having == f"(aggregate_0) > (SELECT COUNT(*) FROM {read})"
    assert shape.outer is None


def test_a_recursive_cte_is_refused() -> None:
    refused(
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 9) "
        f"SELECT COUNT(*) FROM S {WINDOW} JOIN n ON n.x = S.id",
        "recursive-cte",
        "n WHERE",
    )


def refused(text: str, condition: str, at: str) -> None:
    """Assert that the query is refused, and that the error points at the last occurrence of ``at``."""
    with pytest.raises(QueryTextError) as found:
        make_plan(parse(text))
    assert found.value.condition == condition
    assert f"column {text.rindex(at) + 1}\n" in str(found.value), str(found.value)


@pytest.mark.parametrize(
    ("selected", "rest", "at"),
    [
        ("'limit', COUNT(*)", "LIMIT 3", "LIMIT 3"),
        ("COUNT(DISTINCT a), SUM(DISTINCT b)", "", "DISTINCT b"),
        ("COUNT(*), SUM(v) OVER ()", "", "OVER"),
        ("sensor, COUNT(*)", "GROUP BY sensor WITH CUBE", "CUBE"),
        ("sensor, COUNT(*)", "GROUP BY ROLLUP (sensor)", "ROLLUP"),
        ("sensor, COUNT(*)", "GROUP BY GROUPING SETS ((sensor), ())", "GROUPING SETS"),
        ("COUNT(*)", "TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("COUNT(*)", "AS s TABLESAMPLE (10 PERCENT) JOIN n ON n.id = s.id", "TABLESAMPLE"),
        ("COUNT(*)", "PIVOT (MAX(v) FOR x IN (1, 2))", "PIVOT"),
        ("COUNT(*)", "WHERE x IN (SELECT y FROM z ORDER BY x) ORDER BY 1", "ORDER BY 1"),
        ("DISTINCT COUNT(*)", "GROUP BY sensor", "SELECT DISTINCT"),
    ],
)
def test_unsupported_clauses_are_refused(selected: str, rest: str, at: str) -> None:
    refused(f"SELECT {selected} FROM S {WINDOW} {rest}".strip(), "not-in-a-stream", at)


@pytest.mark.parametrize(
    ("selected", "group", "condition", "at"),
    [
        ("COUNT(*), *", "", "star", "* FROM"),
        ("COUNT(*), s.*", "", "star", "s.*"),
        ("sensor, COUNT(*)", "", "not-grouped", "sensor"),
        ("COUNT(*), UPPER(place)", "GROUP BY sensor", "not-grouped", "place"),
        ("COUNT(*)", "HAVING sensor = 'a'", "not-grouped", "sensor"),
        ("sensor, COUNT(*)", "GROUP BY 5", "wrong-group", "5"),
        ("sensor, COUNT(*)", "GROUP BY 1.5", "wrong-group", "1.5"),
        ("sensor, COUNT(*)", "GROUP BY 0", "wrong-group", "0"),
        ("sensor, COUNT(*)", "GROUP BY 2", "wrong-group", "2"),
        ("COUNT(*)", "GROUP BY sensor || window_end", "mixed-key", "sensor"),
        ("MAX(v) AS window_end", "", "reserved-name", "MAX(v)"),
    ],
)
def test_undetermined_columns_and_keys_are_refused(selected: str, group: str, condition: str, at: str) -> None:
    refused(f"SELECT {selected} FROM S {WINDOW} AS s {group}", condition, at)


def test_renaming_the_columns_of_a_stream_is_refused() -> None:
    refused(f"SELECT COUNT(*) FROM S {WINDOW} AS s(a, b)", "renamed-columns", "a, b")


def test_columns_of_the_window_may_be_renamed() -> None:
    _, shape = plan_of(
        f"SELECT window_start, s.window_end AS t, window_end - window_start AS length, MAX(v) AS m FROM S {WINDOW} AS s"
    )
    assert shape.outputs == (("t", "window_end"), ("length", "window_end - window_start"), ("m", "(aggregate_0)"))


def test_keys_that_depend_on_the_window_only_are_dropped() -> None:
    _, shape = plan_of(
        f"SELECT DATE(window_end) AS day, COUNT(*) FROM S {WINDOW} GROUP BY DATE(window_end), window_end"
    )
    assert shape.keys == ()


@pytest.mark.parametrize("known", [(), ("ts", "sensor")])
def test_a_column_takes_precedence_over_an_output_in_group_by(known: tuple[str, ...]) -> None:
    query = parse(f"SELECT UPPER(sensor) AS sensor, COUNT(*) FROM S {WINDOW} GROUP BY sensor HAVING sensor > 'B'")
    _, shape = decompose_select(query, query.windowed()[0][0], "ts", columns=known)
    assert shape is not None and shape.keys == ("sensor",)
    assert shape.outputs[0] == ("sensor", "UPPER(__sw_key_0)")
    assert shape.having == "(UPPER(__sw_key_0)) > 'B'"


def test_a_column_known_from_the_schema_takes_precedence_too() -> None:
    query = parse(f"SELECT v % 2 AS sensor, COUNT(*) FROM S {WINDOW} GROUP BY sensor")
    table = query.windowed()[0][0]
    _, unknown = decompose_select(query, table, "ts")
    assert unknown is not None and unknown.keys == ("v % 2",)
    with pytest.raises(QueryTextError, match="not-grouped"):
        decompose_select(query, table, "ts", columns=["v", "Sensor"])


def test_an_output_may_use_an_earlier_one() -> None:
    _, shape = plan_of(f"SELECT COUNT(*) AS n, n * 2 AS twice, FILTER(COLLECT_LIST(v), x -> x > n) FROM S {WINDOW}")
    assert [sql for _, sql in shape.outputs[:2]] == ["(aggregate_0)", "((aggregate_0)) * 2"]


def test_a_query_without_a_window_is_not_decomposed() -> None:
    plan = make_plan(
        parse("SELECT k, SUM(DISTINCT v) FROM S [DRATIO 1% WATTR ts] LATERAL VIEW EXPLODE(a) t AS k GROUP BY k, ts")
    )
    assert plan.path is Path.ROWS and plan.shape is None
    query = parse("SELECT window.start, COUNT(*) FROM S [DRATIO 1%] GROUP BY window(ts, '5 minutes'), sensor")
    assert make_plan(query).path is Path.ROWS
    assert str(query.select.args["group"].sql(dialect="spark")).strip() == "GROUP BY WINDOW(ts, '5 minutes'), sensor"
