"""Replays: where a recorded stream is cut, when its parts are released, and what is refused. No Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.errors import InvalidData, InvalidOption, PromiseConflict, SlackwaterError
from slackwater.spark.command.columns import parquet_dataset
from slackwater.spark.command.replay_cuts import Cuts, cut_rows, cut_times
from slackwater.spark.command.replay_source import Replay, ReplaySource, _claim, csv_options

Instants = st.lists(st.integers(0, 50), min_size=1, max_size=200).map(sorted)


def never_inside_an_instant(ends: tuple[int, ...], instants: list[int]) -> bool:
    return ends[-1] == len(instants) and all(instants[end - 1] != instants[end] for end in ends[:-1])


@given(Instants, st.integers(1, 40))
def test_a_cut_by_rows_is_never_inside_one_instant(instants: list[int], batches: int) -> None:
    ends = cut_rows(len(instants), np.array(instants), batches)
    assert never_inside_an_instant(ends, instants) and len(ends) <= batches
    assert list(ends) == sorted(set(ends))


@given(Instants, st.integers(1, 60))
def test_a_cut_by_time_holds_at_most_that_span(instants: list[int], every: int) -> None:
    ends = cut_times(np.array(instants, dtype=np.float64), float(every))
    assert never_inside_an_instant(ends, instants)
    for start, end in zip((0, *ends), ends, strict=False):
        assert 0 <= instants[end - 1] - instants[start] < every


def test_without_arrivals_parts_have_equal_size() -> None:
    assert cut_rows(10, None, 3) == (4, 8, 10)
    assert cut_rows(0, None, 3) == () == cut_times(np.empty(0), 1.0)


def test_too_fine_a_cut_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"\[too-many-batches\].*20,000 micro-batches; write 2 ms or more"):
        cut_times(np.arange(20_000.0), 1.0)


def recorded(folder: Path, name: str = "rows.parquet") -> Path:
    start = dt.datetime(2026, 1, 1)
    arrived = [start + dt.timedelta(seconds=second) for second in (0, 0, 1, 9, 9, 30)]
    pq.write_table(pa.table({"arrived": arrived, "n": list(range(6)), "seen": ["a"] * 6}), folder / name)
    return folder / name


def cuts_of(source: ReplaySource, order: str | None) -> Cuts:
    return source._cuts(parquet_dataset(source.where).to_table(), order)


def test_the_options_of_a_replay(tmp_path: Path) -> None:
    file = recorded(tmp_path)
    assert cuts_of(ReplaySource.parse(str(file), None, 3), "arrived").ends == (2, 5, 6)
    by_time = cuts_of(ReplaySource.parse(f"{file}?every=10s", None), "arrived")
    assert by_time == Cuts((5, 6), (9_000.0, 30_000.0))
    at_speed = cuts_of(ReplaySource.parse(f"{file}?speed=5x", None), "arrived")
    assert at_speed == Cuts((3, 5, 6), (1_000.0, 9_000.0, 30_000.0)), "five seconds of arrivals each"
    both = ReplaySource.parse(f"{file}?every=10%20seconds&speed=60", None)
    assert (both.every_ms, both.speed) == (10_000.0, 60.0)
    assert cuts_of(ReplaySource.parse(str(file), None, 3), None).ends == (2, 4, 6)
    assert cuts_of(ReplaySource.parse(str(file), None, 3), "seen").ends == (6,)


@pytest.mark.parametrize(
    ("query", "batches", "condition"),
    [
        ("every=10 parsecs", None, "invalid-duration"),
        ("every=0s", None, "invalid-duration"),
        ("every=10s", 5, "two-batch-sizes"),
        ("speed=fast", None, "invalid-speed"),
        ("speed=0x", None, "invalid-speed"),
        ("sped=60x", None, "unknown-option"),
    ],
)
def test_a_wrong_option_is_refused(tmp_path: Path, query: str, batches: int | None, condition: str) -> None:
    with pytest.raises(SlackwaterError) as refused:
        ReplaySource.parse(f"{recorded(tmp_path)}?{query}", None, batches)
    assert refused.value.condition == condition


@pytest.mark.parametrize("order", [None, "n"])
def test_time_needs_arrival_times(tmp_path: Path, order: str | None) -> None:
    with pytest.raises(InvalidOption, match=r"\[no-arrival\]"):
        cuts_of(ReplaySource.parse(f"{recorded(tmp_path)}?every=10s", None), order)


def test_files_that_are_no_recording_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    empty.touch()
    with pytest.raises(InvalidData, match=r"\[not-parquet\].*empty.parquet"):
        ReplaySource.parse(str(empty), None).check()
    with pytest.raises(InvalidData, match=r"\[no-such-file\].*nowhere.parquet does not exist"):
        ReplaySource.parse(str(tmp_path / "nowhere.parquet"), None)
    (tmp_path / "rows.json").touch()
    with pytest.raises(InvalidOption, match=r"\[no-schema\]"):
        ReplaySource.parse(str(tmp_path / "rows.json"), None)


def test_parts_are_released_in_order_and_once(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(6))})
    for _ in range(2):
        replay = Replay(table, Cuts((2, 5, 6), None), tmp_path, speed=None)
        replay.start()
        assert replay.wait(0)
        files = sorted(tmp_path.glob("*.parquet"))
        assert [pq.read_table(file)["n"].to_pylist() for file in files] == [[0, 1], [2, 3, 4], [5]]
        assert [int(file.stat().st_mtime) for file in files] == [0, 1, 2]
        assert not list(tmp_path.glob(".*"))


def test_at_a_speed_a_part_waits_until_its_last_row_is_due(tmp_path: Path) -> None:
    day_ms = 86_400_000.0
    replay = Replay(pa.table({"n": [0, 1]}), Cuts((1, 2), (0.0, day_ms)), tmp_path, speed=1.0)
    tmp_path.mkdir(exist_ok=True)
    replay.start()
    assert not replay.wait(0)
    replay.stop()
    assert [file.name for file in tmp_path.glob("*.parquet")] in ([], ["00000.parquet"])
    assert not replay.wait(0), "it was stopped, not released"


def test_another_replay_in_the_folder_is_refused(tmp_path: Path) -> None:
    _claim(tmp_path, {"files": [["a", 1, 1]], "ends": [1, 2]}, "a")
    _claim(tmp_path, {"files": [["a", 1, 1]], "ends": [1, 2]}, "a")
    with pytest.raises(PromiseConflict, match=r"\[other-replay\].*cut otherwise"):
        _claim(tmp_path, {"files": [["a", 1, 1]], "ends": [2]}, "a")
    with pytest.raises(PromiseConflict, match=r"\[other-replay\].*that of a replay of a, and this one is of b"):
        _claim(tmp_path, {"files": [["b", 1, 1]], "ends": [1, 2]}, "b")


@pytest.mark.parametrize(
    ("first", "options"),
    [("ts,value", {"header": "true"}), (' "TS", value', {"header": "true"}), ("2026-01-01 00:00:00,1.0", {}), ("", {})],
)
def test_a_header_is_recognised_by_the_names_of_the_columns(
    tmp_path: Path, first: str, options: dict[str, str]
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(first + "\n")
    assert csv_options(file, "ts TIMESTAMP, value DOUBLE") == options


def test_a_header_in_another_order_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("value,ts\n")
    with pytest.raises(InvalidData, match=r"\[other-columns\]"):
        csv_options(file, "ts TIMESTAMP, value DOUBLE")
