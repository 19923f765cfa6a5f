"""The lateness of rows, arrival − event time: counted on a grid, over the run and over the last minutes.

It is not how far rows are behind the clock at the end of their micro-batch: that also holds the time that they waited
in it, and it is what the wait must cover.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.spark.completeness.histogram import SAMPLE_ONE_IN
from slackwater.units import MS_US
from slackwater.watching.point import quantiles_of
from slackwater.watching.series import RECENT_MS

_CELLS_PER_UNIT = 32
"""Cells per unit of the eighth root of a lateness in microseconds: 4.5 % wide at a second, 1.6 % at an hour."""
_MOST_CELLS = 1 << 14
"""Covers the distance between any two timestamps of Spark (years 1 to 9999)."""


def lateness_column(event_us: Column, arrived_us: Column, counted: Column) -> Column:
    """The cell of a row's lateness; null for a row that is not counted."""
    lateness = (arrived_us - event_us).cast("double")
    root = F.signum(lateness) * F.sqrt(F.sqrt(F.sqrt(F.abs(lateness))))
    return F.when(counted, F.floor(root * float(_CELLS_PER_UNIT)).cast("int"))


def count_lateness(cell: Column) -> Column:
    """The aggregate that counts the cells, as ``[(item, count), …]``. ``observe`` interprets it, some 30 ns per row."""
    return F.call_function("approx_top_k", cell, F.lit(_MOST_CELLS), F.lit(_MOST_CELLS))


def decode_lateness(counted: Iterable[Any] | None, *, sampled: bool) -> tuple[tuple[int | None, int], ...] | None:
    """Cells and rows from what ``count_lateness`` observed; a row drawn from a sampled micro-batch stands for many.

    >>> decode_lateness([{"item": 7, "count": 2}], sampled=True)
    ((7, 32),)
    """
    if counted is None:
        return None
    each = SAMPLE_ONE_IN if sampled else 1
    return tuple((cell["item"], cell["count"] * each) for cell in counted)


class LatenessHistory:
    """Counts rows by lateness, over the run and over the last five minutes. No clock and no I/O.

    A lateness is given as the upper edge of its cell, so no row appears fresher than it is.
    """

    def __init__(self) -> None:
        self._run: Counter[int] = Counter()
        self._recent: Counter[int] = Counter()
        self._batches: deque[tuple[float, dict[int, int]]] = deque()  # those that are in _recent

    def add_cells(self, at_ms: float, counted: Iterable[tuple[int | None, int]]) -> None:
        """Add a micro-batch as ``count_lateness`` observed it."""
        cells = {int(cell): int(rows) for cell, rows in counted if cell is not None}
        self._run.update(cells)
        self._recent.update(cells)
        self._batches.append((at_ms, cells))
        while self._batches[0][0] < at_ms - RECENT_MS:
            _, old = self._batches.popleft()
            self._recent -= Counter(old)

    def add_lateness(self, at_ms: float, lateness_ms: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
        """Add a micro-batch whose rows all arrived at its own time."""
        lateness_us = lateness_ms * MS_US
        codes = np.floor(np.sign(lateness_us) * np.abs(lateness_us) ** 0.125 * _CELLS_PER_UNIT).astype(int)
        cells: Counter[int] = Counter()
        for code, count in zip(codes.tolist(), rows.tolist(), strict=True):
            cells[code] += count
        self.add_cells(at_ms, cells.items())

    def run_ms(self) -> tuple[float, ...] | None:
        """The quantiles of lateness over the run; None without rows."""
        return _quantiles_ms(self._run)

    def recent_ms(self) -> tuple[float, ...] | None:
        """The quantiles of lateness over the five minutes before the last micro-batch; None without rows."""
        return _quantiles_ms(self._recent)

    def snapshot(self) -> list[tuple[int, int]]:
        """The counts of the run, as JSON values."""
        return sorted(self._run.items())

    def resume(self, snapshot: Iterable[tuple[int, int]]) -> None:
        """Restore a snapshot."""
        self._run = Counter({int(cell): int(rows) for cell, rows in snapshot})


def _quantiles_ms(cells: Mapping[int, int]) -> tuple[float, ...] | None:
    if not cells:
        return None
    edges = np.array(list(cells), dtype=np.float64) + 1.0
    upper_ms = np.sign(edges) * (np.abs(edges) / _CELLS_PER_UNIT) ** 8 / MS_US
    return quantiles_of(upper_ms, np.array(list(cells.values()), dtype=np.int64))
