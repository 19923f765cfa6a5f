"""SLACK alone is a fixed buffer, with DRATIO a cap; SLACK 0 with DRATIO means punctuations (Kim 2007, Section 4)."""

import math

import pytest

from slackwater.language import parse
from slackwater.plan import Plan, explain, make_plan


def planned(clauses: str) -> Plan:
    return make_plan(parse(f"SELECT COUNT(*) FROM S [RANGE 1 minute SLIDE 1 second {clauses}]"))


@pytest.mark.parametrize("rows", [0, 10])
def test_slack_in_rows_alone_is_a_fixed_buffer(rows: int) -> None:
    plan = planned(f"SLACK {rows}")
    assert (plan.method, plan.method_options) == ("fixed-slack", {"slack_rows": rows})


def test_slack_as_a_time_alone_is_the_wait() -> None:
    for slack, wait_ms in (("0 seconds", 0), ("5 seconds", 5000)):
        promise = planned(f"SLACK {slack}").promise
        assert (promise.min_wait_ms, promise.max_wait_ms) == (wait_ms, wait_ms)


def test_slack_with_a_drop_ratio_is_a_cap() -> None:
    assert planned("SLACK 10 DRATIO 1%").method_options == {"slack_rows": 10}
    assert planned("SLACK 5 seconds DRATIO 1%").promise.max_wait_ms == 5000


@pytest.mark.parametrize("slack", ["0", "0 tuples", "0 seconds"])
def test_zero_slack_with_a_drop_ratio_sets_no_cap(slack: str) -> None:
    plan = planned(f"SLACK {slack} DRATIO 1%")
    assert plan.method_options == {} and plan.promise.max_wait_ms == math.inf
    assert "punctuation mode" in explain(plan)
    assert "punctuation mode" not in explain(planned(f"SLACK {slack}"))


def test_sources_beside_slack_alone_are_only_shown() -> None:
    assert "shown in the report" in explain(planned("SLACK 10 SOURCE host"))
    assert "one front per host" in explain(planned("SLACK 10 DRATIO 1% SOURCE host"))
