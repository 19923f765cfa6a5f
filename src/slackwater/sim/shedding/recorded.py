"""Reads recorded arrivals: a time per arrival, or a count per second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.errors import InvalidData, InvalidOption
from slackwater.names import find_name, near
from slackwater.sim.shedding.inputs import rows_from_rates

Floats = NDArray[np.float64]

TIME_NAMES = ("arrival_ts", "arrival", "arrived_at", "time", "timestamp", "ts", "event_ts")
COUNT_NAMES = ("count", "rows", "requests", "n")


def read_arrivals(
    path: Path,
    *,
    time_column: str | None = None,
    count_column: str | None = None,
    scale: float = 1.0,
    start_s: float = 0.0,
    seconds: float | None = None,
) -> Floats:
    """Read arrival times in seconds since the first one, sorted. Every arrival is repeated ``scale`` times.

    The file is CSV or Parquet. In a count column each row of the file is one second, and its arrivals are spread evenly
    over that second. ``start_s`` and ``seconds`` select a part of the recording. Without a column name the first
    column with one of the usual names is used.
    """
    if scale <= 0:
        raise InvalidOption("invalid-scale", f"scale={scale!r} is not positive", "give a number above 0")
    frame = _read(path)
    time_column, count_column = _columns(frame, path, time_column, count_column)
    if count_column is not None:
        counts = pd.to_numeric(frame[count_column], errors="coerce").to_numpy(dtype=np.float64)
        first = int(start_s)
        counts = counts[first : None if seconds is None else first + int(np.ceil(seconds))]
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise InvalidData(
                "not-counts",
                f"column {count_column!r} of {path.name} does not contain counts",
                "choose another --count",
            )
        rows = rows_from_rates(counts * scale)
    else:
        assert time_column is not None
        times = np.sort(_seconds(frame[time_column], time_column, path))
        times = times - times[0] - start_s if len(times) else times
        times = times[(times >= 0) & (times < (np.inf if seconds is None else seconds))]
        # the fraction of a row that remains after an arrival is carried over to the next
        total = np.floor(np.arange(1, len(times) + 1) * scale + 1e-9)
        rows = np.repeat(times, np.diff(total, prepend=0.0).astype(np.int64))
    if not len(rows):
        raise InvalidData("no-arrivals", f"{path.name} has no arrivals in that range", "choose another range")
    return np.asarray(rows, dtype=np.float64)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InvalidData(
            "unreadable-trace", f"{path.name} cannot be read ({error})", "give a CSV or Parquet file"
        ) from error


def _columns(
    frame: pd.DataFrame, path: Path, time_column: str | None, count_column: str | None
) -> tuple[str | None, str | None]:
    present = [str(name) for name in frame.columns]
    for given in (time_column, count_column):
        if given is not None and find_name(given, present) is None:
            problem = f"{path.name} has no column {given!r}{near(given, present)}"
            raise InvalidData("no-such-column", problem, f"it has: {', '.join(present)}")
    time_column, count_column = (given and find_name(given, present) for given in (time_column, count_column))
    if time_column is not None and count_column is not None:
        raise InvalidOption(
            "two-kinds-of-trace", "a time column and a count column were given", "a trace has one or the other"
        )
    if time_column is None and count_column is None:
        count_column = next((name for name in COUNT_NAMES if name in frame.columns), None)
        if count_column is None:
            time_column = next((name for name in TIME_NAMES if name in frame.columns), None)
    if time_column is None and count_column is None:
        raise InvalidData(
            "no-arrival-column",
            f"{path.name} has columns {', '.join(map(str, frame.columns))}",
            "name one with --arrival or --count",
        )
    return time_column, count_column


def _seconds(column: pd.Series, name: str, path: Path) -> Floats:
    try:
        if pd.api.types.is_numeric_dtype(column):
            return column.to_numpy(dtype=np.float64)
        stamps = pd.to_datetime(column, utc=True)
    except (ValueError, TypeError) as error:
        raise InvalidData(
            "not-times", f"column {name!r} of {path.name} does not contain times ({error})", "choose another --arrival"
        ) from error
    return np.asarray((stamps - stamps.min()).dt.total_seconds().to_numpy(), dtype=np.float64)
