"""The limit that the front puts on the heartbeat: a pipeline that falls behind moves its front more slowly."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.control.disorder.protocol import Batch

DECISIONS_REMEMBERED = 16
"""The front at this many of the last decisions is remembered, to know the one that judged a batch."""
CHANGED_BATCHES = 1.0
"""After n batches without a break, the rows of 1/n of a batch may be lost because the stream breaks in the next one."""
DOUBTED_BATCHES = 3.0
"""After n batches, the rows of 3/n of a batch may be lost because the front stood still (rule of three)."""
DOUBTED_PACE = 0.5
"""While the budget does not cover those rows, the front is expected to move at this share of its usual pace."""


class FrontFrame:
    """Keeps the tail of the lateness behind the front, where the front is the one from which the heartbeat was chosen.

    If rows raise the heartbeat, that is the front after the batch before, and the heartbeat stays at or below it.

    Otherwise it is the front known to the decision. Until the rows that it judges the front usually moves on, so the
    lateness behind it is usually negative, and the limit lies above the front. How far is learned, not extrapolated: a
    stream that pauses and resumes shows rows just above the old front. Costs one tail and a few numbers.
    """

    def __init__(self, reach: float) -> None:
        self._tail = Tail(reach)
        self._decisions: deque[tuple[float, float]] = deque(maxlen=DECISIONS_REMEMBERED)
        self._batches = 0
        self._batch_rows = 0
        self._follows_rows = False

    def decide_at(self, clock: float, front: float) -> None:
        """Note that a heartbeat is decided now, knowing this front."""
        self._decisions.append((clock, front))

    def learn(self, batch: Batch, rows: int, lowest: float, fade: float) -> None:
        """Add the rows of a batch, measured from the front that was known to the decision that judged them."""
        self._batches += 1
        self._batch_rows = rows
        self._follows_rows = batch.follows_rows
        # Before the first report rows are measured from their own arrivals, and no decision has judged them.
        if not self._decisions or (batch.reference is not None and batch.decided_at is None):
            return
        front = self._front_at(batch.decided_at)
        self._tail.add(front - batch.values, batch.weights, rows, front - lowest, fade)

    def _front_at(self, decided_at: float | None) -> float:
        """The front that was known at a decision; None means the last one. Spark reports whole milliseconds."""
        for clock, front in reversed(self._decisions):
            if decided_at is None or math.floor(clock) <= decided_at:
                return front
        return self._decisions[0][1]

    def behind(self, rate: float, margin: float, balance: float) -> float:
        """How far behind the front at most the share ``rate`` of the rows is late; 0 if nothing is known.

        ``margin`` is added while the rate is less than one remembered row. ``balance`` is the budget in rows.
        """
        tail = self._tail
        if not tail.rows:
            return 0.0
        affordable = rate * tail.rows
        behind = tail.above(affordable) if affordable >= 1.0 else tail.highest() + margin
        if self._follows_rows:
            return max(behind, 0.0)
        return behind * DOUBTED_PACE if behind < 0 and not self._affords(DOUBTED_BATCHES, balance) else behind

    def goes_on(self, balance: float) -> bool:
        """Whether rows may raise the heartbeat above the one decided before they came.

        That is so if the budget covers a batch after which the stream goes on elsewhere.
        """
        return self._follows_rows and bool(self._tail.rows) and self._affords(CHANGED_BATCHES, balance)

    def _affords(self, batches: float, balance: float) -> bool:
        return balance >= self._batch_rows * min(1.0, batches / self._batches)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON."""
        decisions = [pair for pair in self._decisions if math.isfinite(pair[1])]
        return {
            "tail": self._tail.snapshot(),
            "decisions": decisions,
            "batches": [self._batches, self._batch_rows],
            "follows_rows": self._follows_rows,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._tail.resume(snapshot["tail"])
        self._decisions.extend((float(clock), float(front)) for clock, front in snapshot["decisions"])
        self._batches, self._batch_rows = snapshot["batches"]
        self._follows_rows = snapshot["follows_rows"]
