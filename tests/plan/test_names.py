"""Names chosen by the user are quoted, so that they cannot end early and continue as SQL."""

import pytest
import sqlglot
from sqlglot import exp

from slackwater.language import parse
from slackwater.names import quoted
from slackwater.plan import Catalog, Shape, make_plan
from slackwater.plan.shape import decompose_select

WINDOW = "[RANGE 5 minutes SLIDE 1 minute WATTR ts]"
EVIL = "z`.x AS y, reflect('java.lang.System', 'exit', 1) FROM slackwater_stream AS z --"


def shape_of(text: str) -> Shape:
    shape = make_plan(parse(text)).shape
    assert shape is not None
    return shape


def test_the_alias_of_a_stream_is_quoted() -> None:
    shape = shape_of(f"SELECT LAST(v) FROM S {WINDOW} AS {quoted(EVIL)}")
    tree = sqlglot.parse_one(f"SELECT {shape.plain_outputs[0][1]} {shape.source.fill('v')}", read="spark")
    assert [table.alias for table in tree.find_all(exp.Table)] == [EVIL]
    assert not list(tree.find_all(exp.Anonymous))


@pytest.mark.parametrize("inside", ["'slot'", "`slot`", "'slackwater_stream'", "`slot_`", "'v'"])
def test_no_text_is_mistaken_for_the_placeholder(inside: str) -> None:
    shape = shape_of(f"SELECT COUNT(*) FROM names AS n JOIN S {WINDOW} AS s ON n.a = {inside}")
    assert shape.source.fill("view") == f"FROM names AS n JOIN view AS `s` ON n.a = {inside}"
    shape = shape_of(f"WITH w AS (SELECT COUNT(*) AS n FROM S {WINDOW}) SELECT {inside}, n FROM w")
    assert shape.outer is not None
    assert shape.outer.fill("view") == f"WITH w AS (SELECT * FROM view) SELECT {inside}, n FROM w"


def test_the_windowing_attribute_is_quoted() -> None:
    query = parse(f"SELECT LAST(v) FROM S [RANGE 5 minutes SLIDE 1 minute WATTR {quoted('t`s')}]")
    (last,), _ = decompose_select(query, query.windowed()[0][0], "t`s")
    assert last.parts[0].lift == "MAX(NAMED_STRUCT('at', `S`.`t``s`, 'value', v))"


def test_an_output_without_alias_gets_the_name_that_spark_gives() -> None:
    shape = shape_of(f"SELECT MAX(`a b`), SUM(s.`c d`) FROM S {WINDOW} AS s")
    assert [name for name, _ in shape.outputs] == ["max(a b)", "sum(s.c d)"]


def test_columns_get_the_spelling_of_the_stream() -> None:
    catalog = Catalog.from_sql("CREATE TABLE S (ts TIMESTAMP, At TIMESTAMP, host STRING, `a b` STRING)")
    window = make_plan(
        parse("SELECT COUNT(*) FROM s [RANGE 1 minute WATTR TS ARRIVAL at SOURCE HOST, `A B`]"), catalog
    ).window
    assert (window.attribute, window.arrival, window.sources) == ("ts", "At", ("host", "a b"))


def test_the_name_of_a_stream_may_have_a_database_and_quotes() -> None:
    plan = make_plan(parse(f"SELECT db.S.k, COUNT(*) FROM db.S {WINDOW} WHERE db.S.v > 1 GROUP BY db.S.k"))
    assert plan.stream == "db.S" and plan.shape is not None
    assert (plan.shape.keys, plan.shape.source.fill("view")) == (("S.k",), "FROM view AS `S` WHERE S.v > 1")
    assert make_plan(parse("SELECT COUNT(*) FROM `the AS stream` [RANGE 1 minute] AS s")).stream == "`the AS stream`"
