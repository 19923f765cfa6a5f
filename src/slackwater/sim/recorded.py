"""Reads a recorded stream from a Parquet or CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as arrow_dataset
import pyarrow.lib as arrow
from numpy.typing import NDArray

from slackwater.errors import InvalidData
from slackwater.files import format_of
from slackwater.names import find_name, near
from slackwater.sim.trace import Trace
from slackwater.units import SECOND_MS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace, the unit of its waits, and notes about how it was read.

    ``unit`` is "s" if waits are arrival clock − heartbeat, in seconds. It is "attribute" if they are front − heartbeat,
    in the unit of the attribute (seconds for a timestamp). A number of the trace divided by ``per_unit`` is in that
    unit.
    """

    trace: Trace
    unit: str
    per_unit: float
    invalid_rows: int
    notes: tuple[str, ...]


def read_recording(
    path: Path,
    event_time: str,
    arrival: str | None = None,
    sources: Sequence[str] = (),
    heartbeat: str | None = None,
) -> Recording:
    """Read the rows of a file in arrival order. Ties, and files without an arrival column, keep the order of the file.

    Rows without a valid windowing attribute or arrival are skipped and counted as invalid. Costs the memory of the
    named columns. Raises ``InvalidData`` if the file or a column is missing or unusable.
    """
    wanted = [event_time, *([arrival] if arrival else []), *sources, *([heartbeat] if heartbeat else [])]
    table = read_columns(path, wanted)
    values, is_time = _numbers(table[event_time], path)
    arrivals, arrival_is_time = (None, True) if arrival is None else _numbers(table[arrival], path)
    if is_time and not arrival_is_time:
        problem = f"{event_time!r} of {path} is a time, but {arrival!r} is a number"
        raise InvalidData("mixed-measures", problem, "name the column with the time of arrival, or leave out --arrival")
    punctuations = None if heartbeat is None else _numbers(table[heartbeat], path)[0]
    codes: NDArray[np.int64] | None = None
    if sources:
        codes = (
            table.groupby(list(sources), sort=False, dropna=False, observed=True).ngroup().to_numpy().astype(np.int64)
        )
    order = _valid_in_arrival_order(values, arrivals)
    invalid = len(values) - len(order)
    if not len(order):
        raise InvalidData(
            "no-valid-rows", f"{path} has no row with a valid {event_time!r}", "check the column and its type"
        )
    notes: list[str] = []
    if invalid:
        notes.append(
            f"{invalid} of {len(values)} rows are invalid (no windowing attribute or no arrival) and were skipped"
        )
    if np.any(np.diff(order) < 0):
        notes.append(f"rows were not in the order of {arrival!r} and were sorted by it; ties keep the file's order")
    has_clock = is_time and arrivals is not None
    if arrivals is not None and not has_clock:
        notes.append(
            f"{event_time!r} is a number: waits are in its unit, behind the front; {arrival!r} only orders the rows"
        )
    trace = Trace(
        path.stem,
        values[order],
        arrivals[order] if has_clock and arrivals is not None else None,
        None if codes is None else codes[order],
        None if punctuations is None else punctuations[order],
    )
    return Recording(trace, "s" if has_clock else "attribute", SECOND_MS if is_time else 1.0, invalid, tuple(notes))


def _valid_in_arrival_order(values: Floats, arrivals: Floats | None) -> NDArray[np.int64]:
    """The positions of the valid rows in arrival order. Ties keep their order."""
    if arrivals is None:
        return np.flatnonzero(np.isfinite(values))
    valid = np.flatnonzero(np.isfinite(values) & np.isfinite(arrivals))
    return valid[np.argsort(arrivals[valid], kind="stable")]


def read_columns(path: Path, wanted: Sequence[str]) -> pd.DataFrame:
    """Read the named columns, in any case, of a Parquet file, a directory of Parquet files, or a CSV file."""
    if not path.exists():
        raise InvalidData("no-such-file", f"{path} does not exist", "give a Parquet or CSV file")
    is_csv = format_of(path) == "csv"  # which may be compressed
    try:
        if is_csv:
            separator = "\t" if ".tsv" in path.name.lower() else ","
            present = list(pd.read_csv(path, nrows=0, sep=separator).columns)
            columns = _present(path, wanted, present)
            table: pd.DataFrame = pd.read_csv(path, usecols=sorted(set(columns)), sep=separator)
        else:
            data = arrow_dataset.dataset(path, format="parquet")
            columns = _present(path, wanted, data.schema.names)
            table = data.to_table(columns=sorted(set(columns))).to_pandas()
    except InvalidData:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InvalidData(
            "unreadable-file", f"{path} cannot be read ({error})", "give a Parquet file, or a CSV file with a header"
        ) from error
    spelled = dict(zip(wanted, columns, strict=True))
    return table[list(spelled.values())].set_axis(list(spelled), axis="columns")


def _present(path: Path, wanted: Sequence[str], present: Sequence[str]) -> list[str]:
    """The wanted columns as the file spells them."""
    found = []
    for name in wanted:
        column = find_name(name, present)
        if column is None:
            problem = f"{path} has no column {name!r}{near(name, present)}"
            raise InvalidData("no-such-column", problem, f"it has: {', '.join(present)}")
        found.append(column)
    return found


def _numbers(column: pd.Series, path: Path) -> tuple[Floats, bool]:
    """The column as floats (milliseconds if it is a time, NaN if invalid), and whether it is a time."""
    if pd.api.types.is_bool_dtype(column):
        raise InvalidData("wrong-type", f"column {column.name!r} of {path} is boolean", "give a time or a number")
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), False
    if not pd.api.types.is_datetime64_any_dtype(column):
        times = pd.to_datetime(column, utc=True, errors="coerce", format="mixed")
        if times.isna().all():
            raise InvalidData(
                "wrong-type",
                f"column {column.name!r} of {path} is neither a time nor a number ({column.iloc[:1].tolist()})",
                "give ISO timestamps or numbers",
            )
        column = times
    if getattr(column.dt, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    stamps = column.to_numpy().astype("datetime64[us]")
    milliseconds = stamps.astype(np.int64) / 1e3
    return np.where(np.isnat(stamps), np.nan, milliseconds), True
