"""The place of shedding that follows from measured costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.shedding.filter_costs import FilterCosts

costs_ns = st.floats(0.0, 1e5)


@given(costs_ns, costs_ns, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_place_that_is_named_costs_less(
    filter_ns: float, shedding_ns: float, pass_ratio: float, shed_ratio: float
) -> None:
    costs = FilterCosts("a", filter_ns, shedding_ns, pass_ratio)
    filter_first_ns = filter_ns + pass_ratio * shedding_ns
    shed_first_ns = shedding_ns + (1 - shed_ratio) * filter_ns
    assert 0.0 <= costs.first_up_to <= 1.0
    rounding_ns = 1e-9 * (filter_ns + shedding_ns)
    if shed_ratio < costs.first_up_to:
        assert filter_first_ns <= shed_first_ns + rounding_ns
    elif shed_ratio > costs.first_up_to:
        assert shed_first_ns <= filter_first_ns + rounding_ns
    assert "filter first" in str(costs)
