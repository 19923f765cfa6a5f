"""How many rows each source could be holding back, were it cut off: what it has sent so far says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.protocol import Floats, Ints

HEARD_WITHIN = 0.6
"""A source is delivering if it was heard within so many waits."""
RATE_WAITS = 100.0
"""Over how many waits the rates of a source are forgotten."""
_LISTS = ("load", "rows", "spans", "peaks", "before")


class BacklogBound:
    """The rows that a source sends within a time are at most its peak rate's, and at most a burst and its mean rate's.

    That is the envelope by which networks reserve for a sender: min(peak · t, burst + mean · t). The burst is what it
    sent in its last wait, the peak the densest wait of late, and the mean is the rate that it has kept up since
    the stream began, its silences included. Costs a few array passes a batch; a source is five numbers.

    Fails for a source that is busier after it was cut off than it ever was before.
    """

    def __init__(self) -> None:
        self.load: Floats = np.zeros(0)
        self.rows: Floats = np.zeros(0)
        self.spans: Floats = np.zeros(0)
        self.peaks: Floats = np.zeros(0)
        self.before: Floats = np.zeros(0)
        self.total = 0.0

    def add_sources(self, at: Ints) -> None:
        """Make room for sources, each before the slot ``at``."""
        for name in _LISTS:
            setattr(self, name, np.insert(getattr(self, name), at, 0.0))

    def observe(self, touched: Ints, counts: Floats, silent: Floats, wait: float) -> None:
        """Let so many rows in of each source in ``touched``, which had been silent for so long."""
        elapsed = np.minimum(silent, RATE_WAITS * wait)
        faded = np.exp(-silent / wait) if wait > 0 else 0.0
        kept = np.exp(-elapsed / (RATE_WAITS * wait)) if wait > 0 else 1.0
        self.load[touched] = self.load[touched] * faded + counts
        self.rows[touched] = self.rows[touched] * kept + counts
        self.spans[touched] = self.spans[touched] * kept + elapsed
        if wait > 0:
            self.peaks[touched] = np.maximum(self.peaks[touched] * kept, self.load[touched] / wait)
        self.total += float(counts.sum())
        self.before[touched] = self.total

    def within(self, times: Floats, slots: Ints, wait: float) -> Floats:
        """The most rows that these sources could hold back in so long a time each."""
        return np.minimum(self.peaks[slots] * times, self.load[slots] + self._means(slots, wait) * times)

    def time_until(self, rows: float, slots: Ints, wait: float) -> Floats:
        """How long it takes at least until each of these sources holds so many rows back."""
        return np.maximum(rows / self.peaks[slots], (rows - self.load[slots]) / self._means(slots, wait))

    def outweighs(self, silence: float, slots: Ints, wait: float) -> NDArray[np.bool_]:
        """Whether each of these could hold back, in so long a silence, more rows than all had sent before it."""
        heavy: NDArray[np.bool_] = self.load[slots] + self._means(slots, wait) * silence > self.before[slots]
        return heavy

    def _means(self, slots: Ints, wait: float) -> Floats:
        return self.rows[slots] / np.maximum(self.spans[slots], HEARD_WITHIN * wait)

    def snapshot(self) -> dict[str, Any]:
        """Five parallel lists, and the rows of all sources."""
        return {"total": self.total, **{name: getattr(self, name).tolist() for name in _LISTS}}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.total = float(snapshot["total"])
        for name in _LISTS:
            setattr(self, name, np.asarray(snapshot[name], dtype=np.float64))
