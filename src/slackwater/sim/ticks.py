"""Recorded values of many streams on a common clock, one row per tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.errors import InvalidData

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TickTable:
    """Tick times in milliseconds, values (ticks × streams; NaN if a stream has no row at a tick), stream names."""

    times: Floats
    values: Floats
    names: list[str]

    @property
    def ticks(self) -> int:
        """The number of ticks."""
        return len(self.times)

    @property
    def period_ms(self) -> float:
        """The median time between two ticks."""
        return float(np.median(np.diff(self.times))) if self.ticks > 1 else 0.0

    def filled(self) -> Floats:
        """Every stream's last known value at every tick. NaN before its first row."""
        return np.asarray(pd.DataFrame(self.values).ffill().to_numpy(), dtype=np.float64)

    def head(self, ticks: int) -> TickTable:
        """The first ``ticks`` ticks."""
        return TickTable(self.times[:ticks], self.values[:ticks], self.names)

    def only(self, names: list[str]) -> TickTable:
        """Some of the streams, at the ticks where at least one of them has a row."""
        columns = [self.names.index(name) for name in names]
        values = self.values[:, columns]
        there = ~np.all(np.isnan(values), axis=1)
        return TickTable(self.times[there], values[there], names)


def tick_table(rows: pd.DataFrame, stream: str, time: str, value: str) -> TickTable:
    """The table of rows (stream, time, value). Of several rows with the same stream and time the first one counts.

    Rows without a finite value and time are left out.
    """
    for column in (stream, time, value):
        if column not in rows.columns:
            raise InvalidData(
                "no-such-column", f"there is no column {column!r}", f"use one of: {', '.join(map(str, rows.columns))}"
            )
    if not pd.api.types.is_numeric_dtype(rows[value]):
        raise InvalidData("not-a-number", f"column {value!r} is {rows[value].dtype}", "name a column of numbers")
    times = rows[time]
    if pd.api.types.is_object_dtype(times) or pd.api.types.is_string_dtype(times):  # text, as in CSV
        parsed = pd.to_datetime(times, utc=True, errors="coerce", format="mixed")
        times = times if parsed.isna().all() else parsed
    if pd.api.types.is_datetime64_any_dtype(times):
        ms = times.astype("datetime64[us, UTC]" if times.dt.tz is not None else "datetime64[us]").astype("int64") / 1e3
    elif pd.api.types.is_numeric_dtype(times):
        ms = times.astype(float)
    else:
        raise InvalidData("not-a-time", f"column {time!r} is {times.dtype}", "name a column of timestamps or numbers")
    long = pd.DataFrame({"stream": rows[stream].astype(str).to_numpy(), "ms": ms.to_numpy(), "value": rows[value]})
    long["value"] = long["value"].astype(float)
    long = long[np.isfinite(long["value"]) & np.isfinite(long["ms"])].drop_duplicates(["stream", "ms"])
    if long.empty:
        raise InvalidData("no-values", f"column {value!r} holds no finite number", "name another column or file")
    wide = long.pivot(index="ms", columns="stream", values="value")
    return TickTable(wide.index.to_numpy(dtype=np.float64), wide.to_numpy(), [str(name) for name in wide.columns])


def common_part(table: TickTable) -> TickTable:
    """The streams that run at the same time, and the span in which they do.

    Leaves out streams that mostly run while fewer than half of all streams do. Then leaves out the ticks before the
    first and after the last one at which at least half of the rest have a row.
    """
    there = ~np.isnan(table.values)
    busy = there.sum(axis=1) >= 0.5 * there.shape[1]
    together = (there & busy[:, None]).sum(axis=0) >= 0.5 * there.sum(axis=0)
    if not np.any(together):
        return table
    values = table.values[:, together]
    busy = (~np.isnan(values)).sum(axis=1) >= 0.5 * values.shape[1]
    first, last = int(np.argmax(busy)), len(busy) - int(np.argmax(busy[::-1]))
    names = [name for name, stays in zip(table.names, together, strict=True) if stays]
    part = TickTable(table.times[first:last], values[first:last], names)
    some = ~np.all(np.isnan(part.values), axis=1)
    return TickTable(part.times[some], part.values[some], names)
