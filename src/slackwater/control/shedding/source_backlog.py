"""What waits in a source that limits its micro-batches, such as ``maxOffsetsPerTrigger`` or ``maxFilesPerTrigger``."""

from __future__ import annotations

from collections import deque
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slackwater.control.shedding.microbatch import MicroBatch

_SMOOTHING = 0.5
"""Weight of the newest batch in the arrival rate."""

_RECENT_BATCHES = 4
"""A source may hand over less than its limit now and then: a folder of files does so at the end of each listing."""

_MARGIN = 1.1
"""The limit no longer decides once the source can be read this much faster than rows arrive."""


class SourceBacklog:
    """Measures the rows that a source holds back, and how fast rows arrive there.

    Behind a limit the rows of a micro-batch do not say how many have arrived. Where the source reports its own lag,
    arrivals are rows read plus the growth of the lag. Otherwise the newest arrival that was read says how far the
    source is behind, and the rows per second of arrival time say how fast they arrive. A source that hands over all it
    has is never behind.
    """

    def __init__(self) -> None:
        self.waiting_rows: float | None = None
        """Rows held back when the last batch was planned; None if unknown."""
        self.holds_back = False
        """Whether the source held rows back from the last batch."""
        self.arriving_per_s = 0.0
        """Rows per second that reach the source; 0 before it is known."""
        self.decides = False
        """Whether the limit decides the delay, so that shedding cannot help."""
        self._rows: deque[int] = deque(maxlen=_RECENT_BATCHES)

    @property
    def rows_per_batch(self) -> float:
        """The rows that the source hands over, averaged over the last batches."""
        return fmean(self._rows) if self._rows else 0.0

    @property
    def behind_s(self) -> float:
        """The time that a row arriving now waits, relative to the arrival rate: waiting rows / arrival rate."""
        return (self.waiting_rows or 0.0) / self.arriving_per_s if self.arriving_per_s > 0 else 0.0

    def observe(self, before: MicroBatch, batch: MicroBatch) -> None:
        """Learn from two consecutive batches with rows."""
        gap_s = max(batch.started_s - before.started_s, 1e-3)
        self._rows.append(batch.rows)
        if batch.waiting_rows is not None:
            grown = 0.0 if before.waiting_rows is None else batch.waiting_rows - before.waiting_rows
            self._learn_rate(max(batch.rows + grown, 0.0), gap_s)
            self.waiting_rows = batch.waiting_rows
            self.holds_back = batch.waiting_rows > 0
        elif batch.newest_arrival_s is not None and before.newest_arrival_s is not None:
            covered_s = batch.newest_arrival_s - before.newest_arrival_s
            if covered_s > 0:
                self._learn_rate(batch.rows, covered_s)
            # an unlimited source hands over rows that arrived after the previous batch was planned
            self.holds_back = batch.newest_arrival_s < before.started_s
            behind_s = batch.started_s - batch.newest_arrival_s
            self.waiting_rows = behind_s * self.arriving_per_s if self.holds_back else 0.0
        if not self.holds_back:
            self.decides = False

    def _learn_rate(self, rows: float, seconds: float) -> None:
        measured = rows / seconds
        before = self.arriving_per_s
        self.arriving_per_s = measured if before == 0.0 else before + _SMOOTHING * (measured - before)

    def longest_s(self, drain_s: float) -> float:
        """The longest duration of a batch that works the backlog off in ``drain_s``."""
        needed_per_s = self.arriving_per_s + (self.waiting_rows or 0.0) / drain_s
        return self.rows_per_batch / max(needed_per_s, 1e-9)

    def judge(self, least_s: float) -> bool:
        """Whether the limit decides: batches of the least duration read slower than rows arrive."""
        fastest_per_s = self.rows_per_batch / least_s
        self.decides = fastest_per_s < self.arriving_per_s * (_MARGIN if self.decides else 1.0)
        return self.decides

    def snapshot(self) -> dict[str, Any]:
        """The arrival rate and whether the limit decides, as JSON."""
        return {"arriving_per_s": self.arriving_per_s, "decides": self.decides}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.arriving_per_s, self.decides = snapshot["arriving_per_s"], snapshot["decides"]
