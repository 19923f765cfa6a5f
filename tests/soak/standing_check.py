"""The answers of standing queries against those of one long-lived process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.helpers.standing import twin
from tests.soak.checks import Problems


def check_answers(root: Path, batches: list[list[dict[str, Any]]], published: pd.DataFrame) -> Problems:
    """Each answer came out once, and is what one evaluator without interruption would have said."""
    expected = twin(root / "standing", batches)
    found = sorted(
        zip(
            published["portfolio"],
            _us(published["at"]) // 1000,
            published["value"],
            published["error_bound"],
            published["interrupted_streams"],
            _us(published["next_evaluation_at"]),
            strict=True,
        )
    )
    if [row[:2] for row in found] != [row[:2] for row in expected]:
        return [f"{len(found)} answers and not {len(expected)}"]
    if not np.allclose([row[2:] for row in found], [row[2:] for row in expected], rtol=1e-12):
        return ["the answers differ from those of one process"]
    return []


def _us(times: pd.Series[Any]) -> pd.Series[Any]:
    return pd.to_datetime(times, utc=True).astype("datetime64[us, UTC]").astype("int64")
