"""Reading recorded streams from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from slackwater.errors import InvalidData
from slackwater.sim.recorded import read_recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pd.DataFrame(
        {
            "ts": pd.to_datetime(["2026-01-01T00:00:02Z", "NaT", "2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"]),
            "seen": pd.to_datetime(
                ["2026-01-01T00:00:05Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:04Z", "2026-01-01T00:00:05Z"]
            ),
            "id": [2, 4, 1, 3],
            "host": ["a", "b", "a", None],
            "text": ["x", "y", "z", "w"],
        }
    )
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_rows_are_sorted_by_arrival_and_nulls_are_invalid(folder: Path, name: str) -> None:
    recording = read_recording(folder / name, "ts", "seen", ["host"])
    start = pd.Timestamp("2026-01-01").timestamp() * 1e3
    assert (recording.trace.values - start).tolist() == [1000.0, 2000.0, 3000.0]
    assert recording.trace.arrivals is not None
    assert (recording.trace.arrivals - start).tolist() == [4000.0, 5000.0, 5000.0]
    assert recording.trace.sources is not None
    assert recording.trace.sources[0] == recording.trace.sources[1] != recording.trace.sources[2]
    assert recording.unit == "s"
    assert recording.invalid_rows == 1
    assert any("1 of 4 rows are invalid" in note for note in recording.notes)
    assert any("sorted" in note for note in recording.notes)


def test_number_is_measured_in_its_own_unit(folder: Path) -> None:
    alone = read_recording(folder / "t.csv", "id")
    assert alone.trace.values.tolist() == [2.0, 4.0, 1.0, 3.0]
    assert (alone.unit, alone.per_unit, alone.trace.arrivals) == ("attribute", 1.0, None)
    ordered = read_recording(folder / "t.csv", "id", "seen")
    assert ordered.trace.values.tolist() == [1.0, 2.0, 4.0, 3.0]
    assert ordered.unit == "attribute"
    assert ordered.trace.arrivals is None


def test_time_without_arrivals_keeps_the_order_of_the_file(folder: Path) -> None:
    recording = read_recording(folder / "t.parquet", "ts")
    assert np.diff(recording.trace.values).tolist() == [-1000.0, 2000.0]
    assert (recording.unit, recording.per_unit) == ("attribute", 1e3)


@pytest.mark.parametrize(
    ("name", "column", "condition"),
    [
        ("nowhere.parquet", "ts", "no-such-file"),
        ("t.parquet", "nothing", "no-such-column.*it has: ts, seen"),
        ("t.csv", "nothing", "no-such-column.*it has: ts, seen"),
        ("t.csv", "text", "wrong-type"),
        ("bad.parquet", "ts", "unreadable-file"),
    ],
)
def test_unusable_file_or_column_is_refused(folder: Path, name: str, column: str, condition: str) -> None:
    (folder / "bad.parquet").write_text("this is not Parquet")
    with pytest.raises(InvalidData, match=condition):
        read_recording(folder / name, column)


def test_file_without_valid_rows_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"v": [np.nan, np.inf]}).to_parquet(tmp_path / "v.parquet")
    with pytest.raises(InvalidData, match="no-valid-rows"):
        read_recording(tmp_path / "v.parquet", "v")


def test_a_compressed_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv.gz"
    pd.DataFrame({"ts": [1.0, 3.0, 2.0]}).to_csv(file, index=False)
    assert read_recording(file, "ts").trace.values.tolist() == [1.0, 3.0, 2.0]
