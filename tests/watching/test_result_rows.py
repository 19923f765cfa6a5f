"""Results of any shape become texts for the live page; none of them raises an error."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from slackwater.spark.command.result_rows import result_rows
from slackwater.watching.series import MAX_RESULT_ROWS

JAN, FEB = dt.datetime(2024, 1, 1, 0, 0, 5), dt.datetime(2024, 2, 1, 0, 0, 10)


@pytest.mark.parametrize(
    ("rows", "texts"),
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
def test_rows_of_any_shape_become_texts(rows: list[dict[str, Any]], texts: tuple[tuple[str, ...], ...]) -> None:
    assert result_rows(rows).rows == texts


def test_the_number_of_rows_is_limited() -> None:
    assert len(result_rows([{"n": number} for number in range(100)]).rows) == MAX_RESULT_ROWS
