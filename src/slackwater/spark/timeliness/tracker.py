"""Keeps one timeliness promise for one running query: a committed micro-batch in, a shed ratio out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from slackwater.control.choice import Law
from slackwater.control.ledger import Ledger
from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController, ShedDecision
from slackwater.promises import Timeliness
from slackwater.spark.worker.mailbox import Mailbox

_REMEMBERED_BATCHES = 1000


@dataclass(frozen=True, slots=True)
class TimelinessSpec:
    """A timeliness promise as it was made on a DataFrame."""

    name: str
    timeliness: Timeliness
    law: Law
    mailbox: Mailbox

    def new_controller(self) -> MicroBatchController:
        """A controller that knows nothing yet."""
        return MicroBatchController(self.timeliness, make_law(self.law.name, **self.law.options))


@dataclass(frozen=True, slots=True)
class TimelinessRecord:
    """One line of a query's history: what the batch did, and what was decided after it."""

    batch_id: int
    batch: MicroBatch
    shed_ratio: float
    decision: ShedDecision


@dataclass(slots=True)
class TimelinessTracker:
    """Controller, ledger and history of one promise in one query; no Spark, no clock, no I/O."""

    spec: TimelinessSpec
    query_id: str
    controller: MicroBatchController = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    last_batch: int = -1
    history: deque[TimelinessRecord] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))
    _delayed_row_s: float = 0.0
    _delayed_rows: int = 0

    def __post_init__(self) -> None:
        self.controller = self.spec.new_controller()

    def resume(self, snapshot: dict[str, Any] | None, next_batch: int) -> None:
        """Go on where the query was, if its snapshot is of an earlier batch."""
        if snapshot is not None and snapshot["batch"] < next_batch:
            self.controller.resume(snapshot["controller"])
            self.ledger = Ledger.from_json(snapshot["ledger"])
            self.last_batch = snapshot["batch"]
            self._delayed_row_s, self._delayed_rows = snapshot["delayed"]
        unreported = next_batch - self.last_batch - 1
        if unreported > 0:
            self.ledger += Ledger(unreported_batches=unreported)

    def on_batch(self, batch_id: int, batch: MicroBatch, shed_ratio: float) -> ShedDecision | None:
        """Learn from a committed micro-batch and decide the shed ratio of a later one; a repetition is ignored."""
        if batch_id <= self.last_batch:
            return None
        self.last_batch = batch_id
        # rows are on time as far as this promise can tell: it judges no event times
        self.ledger += Ledger(on_time=batch.kept, shed=batch.rows - batch.kept)
        decision = self.controller.step(batch)
        if decision.delay_s is not None:
            self._delayed_row_s += batch.kept * decision.delay_s
            self._delayed_rows += batch.kept
        if batch.rows:
            self.history.append(TimelinessRecord(batch_id, batch, shed_ratio, decision))
        return decision

    @property
    def mean_delay_s(self) -> float | None:
        """From a row's arrival until its micro-batch was committed, on average over the rows kept."""
        return self._delayed_row_s / self._delayed_rows if self._delayed_rows else None

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on after a restart, as JSON."""
        return {
            "batch": self.last_batch,
            "ledger": self.ledger.as_json(),
            "controller": self.controller.snapshot(),
            "delayed": [self._delayed_row_s, self._delayed_rows],
        }
