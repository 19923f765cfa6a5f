"""Ledgers add up and survive a round trip through JSON."""

from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.ledger import Ledger

counts = st.integers(0, 10**12)
ledgers = st.builds(Ledger, counts, counts, counts, counts, counts)


@given(ledgers, ledgers)
def test_sum_adds_every_count(one: Ledger, other: Ledger) -> None:
    both = one + other
    assert both.input == one.input + other.input == both.on_time + both.late + both.shed + both.invalid
    assert both == other + one


@given(ledgers)
def test_json_round_trip(ledger: Ledger) -> None:
    assert Ledger.from_json(ledger.as_json()) == ledger
    assert 0.0 <= ledger.drop_ratio <= 1.0
