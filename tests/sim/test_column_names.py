"""Columns of recordings are found in any case, with or without backquotes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from slackwater.errors import InvalidData
from slackwater.sim.recorded import read_recording
from slackwater.sim.shedding.recorded import read_arrivals

ROWS = pd.DataFrame({"Event Time": [1.0, 2.0, 3.0], "a.b": [2.0, 3.0, 4.0], "Zeit_über": ["x", "y", "x"]})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_are_found_in_any_case(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    ROWS.to_csv(file, index=False) if suffix == "csv" else ROWS.to_parquet(file)
    trace = read_recording(file, "event time", "A.B", ["`zeit_über`"]).trace
    assert trace.values.tolist() == [1.0, 2.0, 3.0] and trace.sources is not None
    assert read_arrivals(file, time_column="EVENT TIME").tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(InvalidData, match=r"no column 'Event Tim' \(did you mean Event Time\?\)"):
        read_recording(file, "Event Tim")
