"""How a SELECT is taken apart: keys by any of their names, aliases in HAVING, aggregates once."""

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Plan, Shape, make_plan

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
    assert shape.outputs[1][1] == "(part_0_0)"


def test_a_key_may_be_an_expression() -> None:
    _, shape = plan_of(f"SELECT value % 2 AS odd, 1 + MAX(value) FROM S {WINDOW} GROUP BY odd")
    assert shape.keys == ("value % 2",)
    assert [sql for _, sql in shape.outputs] == ["__sw_key_0", "1 + (part_0_0)"]


def test_having_may_name_an_output() -> None:
    plan, shape = plan_of(f"SELECT COUNT(*) AS n FROM S {WINDOW} HAVING n > 3 AND MAX(v) > 1")
    assert shape.having == "((part_0_0)) > 3 AND (part_1_0) > 1"
    assert [aggregate.sql for aggregate in plan.aggregates] == ["COUNT(*)", "MAX(v)"]


def test_an_aggregate_that_is_used_twice_is_computed_once() -> None:
    plan, _ = plan_of(f"SELECT SUM(v), SUM(v) / COUNT(*) FROM S {WINDOW} HAVING SUM(v) > 0")
    assert [aggregate.sql for aggregate in plan.aggregates] == ["SUM(v)", "COUNT(*)"]


def test_the_query_around_the_window_keeps_its_place() -> None:
    _, shape = plan_of(f"WITH w AS (SELECT COUNT(*) AS n FROM S {WINDOW}) SELECT n + 1 FROM w WHERE n > 2")
    assert shape.outer is not None
    assert shape.outer.filled("result") == "WITH w AS (SELECT * FROM result) SELECT n + 1 FROM w WHERE n > 2"


def test_joins_and_where_stay_sparks() -> None:
    _, shape = plan_of(
        f"SELECT COUNT(*) FROM S {WINDOW} JOIN n ON n.id = S.id WHERE v > 1 AND n.x IN (SELECT y FROM z)"
    )
    assert shape.source.filled("stream") == (
        "FROM stream AS `S` JOIN n ON n.id = S.id WHERE v > 1 AND n.x IN (SELECT y FROM z)"
    )


def test_first_and_last_go_by_the_windowing_attribute_on_either_route() -> None:
    plan, shape = plan_of(f"SELECT LAST(v), PERCENTILE(v, 0.5) FROM S {WINDOW}")
    assert not plan.in_panes
    assert shape.plain_outputs[0][1] == "(MAX(NAMED_STRUCT('at', `S`.`ts`, 'value', v)).value)"


@pytest.mark.parametrize("text", ["SUM(DISTINCT v)", "COUNT(DISTINCT v, w)"])
def test_what_spark_cannot_do_over_a_stream_is_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="not-in-a-stream"):
        make_plan(parse(f"SELECT {text} FROM S {WINDOW}"))
