"""Results of any shape that a query can have become texts, and never an error in the query that publishes them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from slackwater.spark.command.shown_results import shown_of
from slackwater.watching.series import MOST_SHOWN

JAN, FEB = dt.datetime(2024, 1, 1, 0, 0, 5), dt.datetime(2024, 2, 1, 0, 0, 10)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([], ()),
        (
            [{"window_end": JAN, "v": 1.5}, {"window_end": FEB, "v": float("nan")}],
            (("00:00:10", "–"), ("00:00:05", "1.5")),
        ),
        ([{"window_end": pd.NaT, "v": np.array([1, 2])}], (("–", "[1 2]"),)),
        (
            [{"window": {"start": "a"}, "n": 1}, {"window": {"start": "b"}, "n": 2}],
            (("{'start': 'b'}", "2"), ("{'start': 'a'}", "1")),
        ),
        ([{"window_end": "2024", "n": 1}, {"n": 2}], (("2024", "1"), ("–", "2"))),
        ([{"n": "x" * 50}], (("x" * 39 + "…",),)),
    ],
)
def test_any_shape(rows: list[dict[str, Any]], shown: tuple[tuple[str, ...], ...]) -> None:
    assert shown_of(rows).rows == shown


def test_no_more_than_fit() -> None:
    assert len(shown_of([{"n": number} for number in range(100)]).rows) == MOST_SHOWN
