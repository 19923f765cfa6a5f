"""Parsing of durations and ratios."""

import datetime as dt

import pytest

from slackwater import units
from slackwater.errors import InvalidOption


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10 minutes", 600_000),
        ("10 MINUTES", 600_000),
        ("interval 2 hours", 7_200_000),
        ("1 hour, 30 minutes", 5_400_000),
        ("250ms", 250),
        ("0.5 s", 500),
        (dt.timedelta(seconds=2), 2_000),
        (3, 3_000),
        (0, 0),
    ],
)
def test_duration(text: str | float | dt.timedelta, ms: float) -> None:
    assert units.duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "ten minutes", "10 parsecs", "10", "-1 second", -1, float("nan"), True])
def test_wrong_duration_is_refused_by_name(text: str | float) -> None:
    with pytest.raises(InvalidOption, match="invalid-duration.*max_wait"):
        units.duration_ms(text, option="max_wait")


@pytest.mark.parametrize(("text", "number"), [("1%", 0.01), ("0.5 %", 0.005), (0, 0.0), ("0.25", 0.25)])
def test_ratio(text: str | float, number: float) -> None:
    assert units.ratio(text) == number


@pytest.mark.parametrize("text", ["100%", 1, -0.1, "lots", float("nan"), True])
def test_wrong_ratio_is_refused_by_name(text: str | float) -> None:
    with pytest.raises(InvalidOption, match="invalid-ratio.*drop_ratio"):
        units.ratio(text, option="drop_ratio")
