"""What is said of counts over a thinned stream: what must be exact, what may be off, and by how much."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "thinned.py"
START = pd.Timestamp("2026-01-01")


def at(seconds: float) -> pd.Timestamp:
    return START + pd.Timedelta(seconds=seconds)


def windows(*counts: float | None, errors: tuple[float, ...] = ()) -> pd.DataFrame:
    """Windows of a second, one after another; None for one that has no result."""
    found = [
        (at(i), at(i + 1), count, error)
        for i, (count, error) in enumerate(zip(counts, errors or (0.0,) * len(counts), strict=True))
        if count is not None
    ]
    return pd.DataFrame(found, columns=["window_start", "window_end", "count(*)", "count(*)_error"])


@pytest.fixture(scope="module")
def thinned() -> Any:
    spec = importlib.util.spec_from_file_location("thinned", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["thinned"] = module
    spec.loader.exec_module(module)
    return module


# Ten rows in the first second, of which nothing could be shed; ten in the second one, two of which could.
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
def test_a_window_that_could_be_thinned_is_an_estimate(thinned: Any, found: pd.DataFrame, kind: str) -> None:
    counts = thinned.compared(found, BATCH, ROWS)
    assert counts.exact == 1 and counts.wrong == 0
    assert getattr(counts, kind) == 1


@pytest.mark.parametrize(
    "found",
    [
        windows(9.0, 10.0),  # nothing could be shed of the first
        windows(10.0, 10.0, errors=(0.1, 0.0)),
        windows(10.0, 7.0, errors=(0.0, 5.0)),  # only two could be shed of the second
        windows(10.0, 13.0, errors=(0.0, 5.0)),  # and those that were kept count twice
        windows(10.0),  # eight of its rows were there for certain
        windows(10.0, 10.0, 1.0),  # no row was there
        pd.concat([windows(10.0, 10.0), windows(10.0)]),
    ],
)
def test_what_no_coin_explains_is_wrong(thinned: Any, found: pd.DataFrame) -> None:
    assert thinned.compared(found, BATCH, ROWS).wrong == 1


def test_a_window_may_be_missing_if_all_of_it_could_be_shed(thinned: Any) -> None:
    rows = pd.DataFrame({"ts": [at(0.5), at(1.5)], "shed_ratio": [0.5, 0.0]})
    assert thinned.compared(windows(None, 1.0), windows(1.0, 1.0), rows).wrong == 0
