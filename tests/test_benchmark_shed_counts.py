"""Comparison of estimated counts with a batch job's: which must be exact, which may differ, and by how much."""

from __future__ import annotations

import importlib
from typing import Any

import pandas as pd
import pytest

START = pd.Timestamp("2026-01-01")


def at(seconds: float) -> pd.Timestamp:
    return START + pd.Timedelta(seconds=seconds)


def windows(*counts: float | None, errors: tuple[float, ...] = ()) -> pd.DataFrame:
    """Consecutive windows of one second; a count of None leaves the window out."""
    found = [
        (at(i), at(i + 1), count, error)
        for i, (count, error) in enumerate(zip(counts, errors or (0.0,) * len(counts), strict=True))
        if count is not None
    ]
    return pd.DataFrame(found, columns=["window_start", "window_end", "count(*)", "count(*)_error"])


@pytest.fixture(scope="module")
def shed_counts() -> Any:
    return importlib.import_module("shed_counts")


# Ten rows in the first second, none of which could be shed; ten in the next, two of which could be shed.
ROWS = pd.DataFrame(
    {
        "ts": [at(0.05 + 0.1 * i) for i in range(20)],
        "shed_ratio": [0.0] * 18 + [0.5] * 2,
    }
)
BATCH = windows(10.0, 10.0)


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (windows(10.0, 10.0, errors=(0.0, 1.4)), "near"),
        (windows(10.0, 12.0, errors=(0.0, 2.0)), "near"),
        (windows(10.0, 8.0, errors=(0.0, 0.0)), "unaware"),
        (windows(10.0, 12.0, errors=(0.0, 0.5)), "far"),
    ],
)
def test_a_window_with_sheddable_rows_is_an_estimate(shed_counts: Any, found: pd.DataFrame, kind: str) -> None:
    counts = shed_counts.compare_counts(found, BATCH, ROWS)
    assert counts.exact == 1 and counts.wrong == 0
    assert getattr(counts, kind) == 1


@pytest.mark.parametrize(
    "found",
    [
        windows(9.0, 10.0),  # no row of the first window could be shed
        windows(10.0, 10.0, errors=(0.1, 0.0)),
        windows(10.0, 7.0, errors=(0.0, 5.0)),  # only two rows of the second could be shed
        windows(10.0, 13.0, errors=(0.0, 5.0)),  # a kept row counts twice, so 12 is the most
        windows(10.0),  # eight rows of the missing window could not be shed
        windows(10.0, 10.0, 1.0),  # the third window has no rows
        pd.concat([windows(10.0, 10.0), windows(10.0)]),
    ],
)
def test_a_count_that_no_draw_explains_is_wrong(shed_counts: Any, found: pd.DataFrame) -> None:
    assert shed_counts.compare_counts(found, BATCH, ROWS).wrong == 1


def test_a_window_may_be_missing_if_all_its_rows_could_be_shed(shed_counts: Any) -> None:
    rows = pd.DataFrame({"ts": [at(0.5), at(1.5)], "shed_ratio": [0.5, 0.0]})
    assert shed_counts.compare_counts(windows(None, 1.0), windows(1.0, 1.0), rows).wrong == 0
