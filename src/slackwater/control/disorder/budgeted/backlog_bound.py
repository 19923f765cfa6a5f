"""An upper bound on the rows that a silent source may be holding back, from its rates so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.protocol import Floats, Ints

HEARD_WITHIN = 0.6
"""A source is delivering if its last row arrived within this many waits."""
RATE_WAITS = 100.0
"""The rates of a source are averaged over this many waits."""
_PER_SOURCE = ("load", "rows", "spans", "peaks", "before")


class BacklogBound:
    """Bounds the rows that a source sends within a time t by min(peak · t, burst + mean · t).

    This is the envelope that networks use to reserve capacity for a sender. For each source, ``load`` is the burst
    (the rows of its last wait), ``peaks`` the highest recent rate within one wait, and ``rows`` / ``spans`` the mean
    rate including silences. ``before`` is the number of rows of all sources when the source was last heard, ``total``
    that number now. All rates are forgotten exponentially.

    Costs a few array passes per batch and five numbers per source. The bound fails for a source that sends at a higher
    rate after it was cut off than ever before.
    """

    def __init__(self) -> None:
        self.load: Floats = np.zeros(0)
        self.rows: Floats = np.zeros(0)
        self.spans: Floats = np.zeros(0)
        self.peaks: Floats = np.zeros(0)
        self.before: Floats = np.zeros(0)
        self.total = 0.0

    def add_sources(self, at: Ints) -> None:
        """Insert new sources before the array positions ``at``."""
        for name in _PER_SOURCE:
            setattr(self, name, np.insert(getattr(self, name), at, 0.0))

    def observe(self, touched: Ints, counts: Floats, silent: Floats, wait: float) -> None:
        """Count ``counts`` rows of the sources ``touched``, which had been silent for the times ``silent``."""
        elapsed = np.minimum(silent, RATE_WAITS * wait)
        load_decay = np.exp(-silent / wait) if wait > 0 else 0.0
        rate_decay = np.exp(-elapsed / (RATE_WAITS * wait)) if wait > 0 else 1.0
        self.load[touched] = self.load[touched] * load_decay + counts
        self.rows[touched] = self.rows[touched] * rate_decay + counts
        self.spans[touched] = self.spans[touched] * rate_decay + elapsed
        if wait > 0:
            self.peaks[touched] = np.maximum(self.peaks[touched] * rate_decay, self.load[touched] / wait)
        self.total += float(counts.sum())
        self.before[touched] = self.total

    def within(self, times: Floats, slots: Ints, wait: float) -> Floats:
        """The largest number of rows that each source in ``slots`` may send within its time in ``times``."""
        return np.minimum(self.peaks[slots] * times, self.load[slots] + self._means(slots, wait) * times)

    def time_until(self, rows: float, slots: Ints, wait: float) -> Floats:
        """The shortest time in which each source in ``slots`` may send ``rows`` rows."""
        return np.maximum(rows / self.peaks[slots], (rows - self.load[slots]) / self._means(slots, wait))

    def outweighs(self, silence: float, slots: Ints, wait: float) -> NDArray[np.bool_]:
        """Whether each source may send more rows within ``silence`` than all sources had sent when it fell silent."""
        heavy: NDArray[np.bool_] = self.load[slots] + self._means(slots, wait) * silence > self.before[slots]
        return heavy

    def _means(self, slots: Ints, wait: float) -> Floats:
        return self.rows[slots] / np.maximum(self.spans[slots], HEARD_WITHIN * wait)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON: a list per quantity, and the total."""
        return {"total": self.total, **{name: getattr(self, name).tolist() for name in _PER_SOURCE}}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.total = float(snapshot["total"])
        for name in _PER_SOURCE:
            setattr(self, name, np.asarray(snapshot[name], dtype=np.float64))
