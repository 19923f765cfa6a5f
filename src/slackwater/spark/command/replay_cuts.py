"""Where a recorded stream is cut into micro-batches. No Spark, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.errors import InvalidOption
from slackwater.units import duration_text

MOST_BATCHES = 10_000
DEFAULT_BATCHES = 20


@dataclass(frozen=True, slots=True)
class Cuts:
    """The micro-batches of a replay: where each one ends, in rows, and when its last row arrived.

    ``arrived_ms`` is measured from the first row; it is None for a stream without arrival times.
    """

    ends: tuple[int, ...]
    arrived_ms: tuple[float, ...] | None


def cut_rows(rows: int, arrivals: NDArray[np.int64] | None, batches: int) -> tuple[int, ...]:
    """Ends of ``batches`` micro-batches of about equal size; never between two rows of the same ``arrivals``.

    >>> cut_rows(6, np.array([1, 2, 2, 2, 3, 4]), 3)
    (4, 6)
    """
    size = max(1, -(-rows // batches))
    ends = np.append(np.arange(size, rows, size), rows)
    if arrivals is not None and rows:
        ends = np.unique(np.searchsorted(arrivals, arrivals[ends - 1], side="right"))
    return tuple(ends.tolist()) if rows else ()


def cut_times(arrivals_ms: NDArray[np.float64], every_ms: float) -> tuple[int, ...]:
    """Ends of the micro-batches that hold ``every_ms`` of arrivals each; a span without rows has none.

    >>> cut_times(np.array([0.0, 400.0, 1000.0, 5000.0]), 1000.0)
    (2, 3, 4)
    """
    if not len(arrivals_ms):
        return ()
    span = np.floor((arrivals_ms - arrivals_ms[0]) / every_ms)
    ends = np.append(np.flatnonzero(np.diff(span)) + 1, len(span))
    if len(ends) > MOST_BATCHES:
        least_ms = (arrivals_ms[-1] - arrivals_ms[0]) / MOST_BATCHES
        raise InvalidOption(
            "too-many-batches",
            f"every={duration_text(every_ms)} cuts the replay into {len(ends):,} micro-batches",
            f"write {duration_text(least_ms)} or more",
        )
    return tuple(ends.tolist())
