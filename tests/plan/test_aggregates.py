"""Aggregates are recognized by any name and with any modifier, and decomposed for panes."""

import pytest
from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import make_plan
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.functions import AGGREGATES, is_aggregate

SLIDING = "[RANGE 5 minutes SLIDE 1 minute WATTR ts]"


def aggregate(call: str, window: str = SLIDING) -> Aggregate:
    (found,) = make_plan(parse(f"SELECT {call} AS a FROM S {window}")).aggregates
    return found


def test_every_aggregate_of_spark_is_recognized() -> None:
    def called(name: str) -> exp.Expr:
        call: exp.Expr
        arguments = "x, y" if name.startswith(("corr", "covar", "regr", "max_by", "min_by")) else "x"
        (call,) = parse(f"SELECT {name}({arguments})").select.expressions
        return call

    assert [name for name in sorted(AGGREGATES) if not is_aggregate(called(name))] == []
    assert not any(
        is_aggregate(called(name)) for name in ("abs", "hll_union", "kll_sketch_get_n_double", "vector_norm")
    )


@pytest.mark.parametrize("text", ["x LIKE ANY ('a', 'b')", "x ILIKE ANY ('a')"])
def test_like_any_is_not_an_aggregate(text: str) -> None:
    query = parse(f"SELECT {text}")
    assert not any(is_aggregate(node) for node in query.select.walk())


@pytest.mark.parametrize(
    ("call", "lift"),
    [
        ("FIRST(v, true)", "MIN(NAMED_STRUCT('at', `S`.`ts`, 'value', v)) FILTER (WHERE (v) IS NOT NULL)"),
        ("LAST(v) IGNORE NULLS", "MAX(NAMED_STRUCT('at', `S`.`ts`, 'value', v)) FILTER (WHERE (v) IS NOT NULL)"),
        (
            "FIRST_VALUE(v) FILTER (WHERE w > 1) IGNORE NULLS",
            "MIN(NAMED_STRUCT('at', `S`.`ts`, 'value', v)) FILTER (WHERE (w > 1) AND (v) IS NOT NULL)",
        ),
        ("LAST(v) RESPECT NULLS", "MAX(NAMED_STRUCT('at', `S`.`ts`, 'value', v))"),
        ("ANY_VALUE(v, true)", "ANY_VALUE(v) FILTER (WHERE (v) IS NOT NULL)"),
        ("ANY_VALUE(a OR b) IGNORE NULLS", "ANY_VALUE(a OR b) FILTER (WHERE (a OR b) IS NOT NULL)"),
        ("ANY(v > 3)", "BOOL_OR((v > 3))"),
        ("COUNT(a, b)", "COUNT(a, b)"),
        ("COUNT(a, b, c)", "COUNT(a, b, c)"),
        ("APPROX_COUNT_DISTINCT(v)", "HLL_SKETCH_AGG(IF((v) IS NULL, NULL, XXHASH64(v)))"),
        ("APPROX_COUNT_DISTINCT(v, 0.05)", "HLL_SKETCH_AGG(IF((v) IS NULL, NULL, XXHASH64(v)), 9)"),
    ],
)
def test_lift_of_mergeable_aggregates(call: str, lift: str) -> None:
    found = aggregate(call)
    assert [part.lift for part in found.parts] == [lift]


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ("MODE() WITHIN GROUP (ORDER BY v)", "MODE() WITHIN GROUP (ORDER BY v)"),
        ("MODE(v) FILTER (WHERE w)", "MODE(v) FILTER (WHERE w)"),
        ("APPROX_COUNT_DISTINCT(v, 0.3)", "APPROX_COUNT_DISTINCT(v, 0.3)"),
        ("MAX_BY(a, b)", "MAX_BY(a, b)"),
        ("CORR(a, b)", "CORR(a, b)"),
        ("HLL_UNION_AGG(sketch)", "HLL_UNION_AGG(sketch)"),
        ("THETA_SKETCH_AGG(v)", "THETA_SKETCH_AGG(v)"),
        ("LISTAGG(v, ', ')", "LISTAGG(v, ', ')"),
    ],
)
def test_unmergeable_aggregates_take_the_plain_route(call: str, plain: str) -> None:
    found = aggregate(call)
    assert not found.mergeable and found.plain == plain
    plan = make_plan(parse(f"SELECT 1 + {call} AS a FROM S {SLIDING}"))
    assert plan.shape is not None and plan.shape.plain_outputs == (("a", f"1 + ({plain})"),)


@pytest.mark.parametrize("call", ["LAST(v, b)", "FIRST(v, 1 = 1) FILTER (WHERE w)", "ANY_VALUE(v, NULL)"])
@pytest.mark.parametrize("window", [SLIDING, "[RANGE 5 minutes WATTR ts]"])
def test_skipping_of_nulls_must_be_a_literal(call: str, window: str) -> None:
    with pytest.raises(QueryTextError, match="unsure-nulls"):
        aggregate(call, window)


def test_braces_in_an_argument_are_kept() -> None:
    lower = aggregate("PERCENTILE_APPROX(v, IF('{0}' = '}', 0.5, 0.1))").lower
    assert "IF('{0}' = '}', 0.5, 0.1)" in lower and "KLL_SKETCH_GET_N_DOUBLE(part_0_0)" in lower


def test_count_of_several_columns_ignores_rows_with_a_null() -> None:
    per_row = aggregate("COUNT(a, b)", "[RANGE 5 minutes WATTR ts]")
    assert per_row.operator == (("count", "IF((a) IS NULL OR (b) IS NULL, NULL, 1D)"),)
    shed = aggregate("COUNT(a, b)", "[RANGE 5 minutes SLIDE 1 minute WATTR ts DELAY 1 second]")
    assert [part.lift for part in shed.parts] == [
        "SUM((CASE WHEN ((a) IS NOT NULL) AND ((b) IS NOT NULL) THEN `S`.`shed_weight` END))"
    ]


@pytest.mark.parametrize(
    ("window", "condition"),
    [
        ("[RANGE 5 minutes WATTR ts]", "unordered-aggregate"),
        ("[RANGE 5 minutes SLIDE 1 minute DELAY 1 second]", "star"),
    ],
)
def test_count_of_a_star_is_refused_by_the_operator_and_under_shedding(window: str, condition: str) -> None:
    assert aggregate("COUNT(S.*)").mergeable
    with pytest.raises(QueryTextError, match=condition):
        aggregate("COUNT(S.*)", window)
