"""Keeps one timeliness promise for one running query: a committed micro-batch in, a shed ratio out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slackwater.control.choice import Law
from slackwater.control.ledger import Ledger
from slackwater.control.shedding import make_law
from slackwater.control.shedding.common_batch import decision_for, together
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController, ShedDecision
from slackwater.control.shedding.utility import KEEP_ALL, Threshold, UtilityHistogram
from slackwater.errors import InvalidOption
from slackwater.promises import Timeliness
from slackwater.spark.runtime.row_flow import RowFlow
from slackwater.spark.worker.mailbox import TARGET, Mailbox
from slackwater.units import duration_text


@dataclass(frozen=True, slots=True)
class TimelinessSpec:
    """A timeliness promise as it was made on a DataFrame.

    ``limits`` are those of its sources. ``shed_by`` is the utility of a row in words; None sheds at random. ``flow``
    says which rows of the sources reach the promise; None if that is not known.
    """

    name: str
    timeliness: Timeliness
    law: Law
    mailbox: Mailbox
    limits: tuple[str, ...] = ()
    shed_by: str | None = None
    flow: RowFlow | None = None

    @property
    def folder(self) -> Path:
        """Where the promise keeps its files."""
        return self.mailbox.series_folder

    def new_controller(self) -> MicroBatchController:
        """A controller that has learned nothing yet; refuses an unknown law or option."""
        return MicroBatchController(self.timeliness, make_law(self.law.name, **self.law.options))


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """A micro-batch, the shed ratio it ran under, and the decision made after it.

    ``limit`` says in words which limit of the source decides the delay; None while none does.
    """

    batch_id: int
    batch: MicroBatch
    shed_ratio: float
    decision: ShedDecision
    limit: str | None = None


@dataclass(slots=True)
class TimelinessTracker:
    """Controller and ledger of one promise in one query; no Spark, no clock, no I/O.

    ``target`` is the target of the next decision, ``latest`` the outcome of the last micro-batch with rows. Trackers
    whose streams are shed together share a controller.
    """

    spec: TimelinessSpec
    query_id: str
    controller: MicroBatchController = field(init=False)
    target: Timeliness = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    last_batch: int = -1
    latest: BatchOutcome | None = None
    limit_warned: bool = False
    utilities: UtilityHistogram = field(default_factory=UtilityHistogram)
    _delayed_row_s: float = 0.0
    _promised_row_s: float = 0.0
    _delayed_rows: int = 0
    _target_in_force_s: float = field(init=False)
    _refused_target: str | None = None

    def __post_init__(self) -> None:
        self.controller = self.spec.new_controller()
        self.target = self.spec.timeliness
        self._target_in_force_s = self.spec.timeliness.max_delay_s

    def share_with(self, others: Iterable[TimelinessTracker]) -> None:
        """Take the controller of another stream of the query, if one has the same law.

        A limit of a source holds back the rows of one stream only, so such a stream is controlled for itself.
        """
        for other in others:
            if other.spec.law == self.spec.law and not other.spec.limits and not self.spec.limits:
                self.controller = other.controller
                return

    def resume(self, snapshot: dict[str, Any] | None, next_batch: int) -> None:
        """Continue after a restart, if the snapshot is of an earlier batch. A batch without a report stays uncounted.

        Which of its rows were shed was drawn anew and is in no file.
        """
        if snapshot is not None and snapshot["batch"] < next_batch:
            self.controller.resume(snapshot["controller"])
            self.ledger = Ledger.from_json(snapshot["ledger"])
            self.last_batch = snapshot["batch"]
            self._delayed_row_s, self._delayed_rows = snapshot["delayed_row_s"], snapshot["delayed_rows"]
            promised_s = self._delayed_rows * self.spec.timeliness.max_delay_s
            self._promised_row_s = snapshot.get("promised_row_s", promised_s)
        self._miss_until(next_batch)

    def _miss_until(self, batch_id: int) -> None:
        missed = max(0, batch_id - self.last_batch - 1)
        self.ledger += Ledger(unreported_batches=missed)
        self.last_batch += missed

    def skip_batch(self, batch_id: int, *, had_rows: bool) -> None:
        """Take note of a committed micro-batch that was not observed; without rows there was nothing to count."""
        if batch_id > self.last_batch:
            self._miss_until(batch_id + 1 if had_rows else batch_id)
            self.last_batch = batch_id

    def retarget(self, text: str | None) -> str | None:
        """Take the target that an operator wrote; None is the one in the query. Returns a warning for a bad value.

        A bad value changes nothing and is warned of once.
        """
        if text is not None and text == self._refused_target:
            return None
        self._refused_target = None
        try:
            self.target = self.spec.timeliness if text is None else Timeliness.of(text)
        except InvalidOption as error:
            self._refused_target = text
            return (
                f"[target-refused] {text!r} in {self.spec.mailbox.storage.uri}/{TARGET} is not a target: {error}; "
                f"the target stays at {duration_text(self.target.max_delay_s * 1e3)}"
            )
        return None

    def on_batch(
        self,
        batch_id: int,
        batch: MicroBatch,
        shed_ratio: float,
        decision: ShedDecision,
        source: str | None = None,
        *,
        misread: bool = False,
    ) -> BatchOutcome:
        """Take a committed micro-batch into account, with the decision that ``decide_together`` made after it.

        ``source`` is the source's description in Spark's progress. ``misread``: the rows were not read exactly once, as
        far as one can tell.
        """
        self._miss_until(batch_id)  # Spark drops events that it cannot deliver in time
        self.last_batch = batch_id
        # This promise judges no event times: every kept row counts as on time.
        self.ledger += Ledger(on_time=batch.kept, shed=batch.rows - batch.kept, misread_batches=int(misread))
        if self.spec.limits and batch.waiting_rows is None and batch.newest_arrival_s is None:
            # nothing says how many rows a source with a limit holds back
            decision = replace(decision, backlog_rows=None)
        if decision.delay_s is not None:
            self._delayed_row_s += batch.kept * decision.delay_s
            self._promised_row_s += batch.kept * self._target_in_force_s
            self._delayed_rows += batch.kept
        self._target_in_force_s = self.target.max_delay_s
        limit = self._limit(source) if decision.limit_decides else None
        outcome = BatchOutcome(batch_id, batch, shed_ratio, decision, limit)
        if batch.rows:
            self.latest = outcome
        return outcome

    def _limit(self, source: str | None) -> str:
        limit = ", ".join(self.spec.limits) or "limit per micro-batch"
        return f"{limit} of {source or 'the source'}"

    @property
    def mean_delay_s(self) -> float | None:
        """The delay from arrival to commit, averaged over all kept rows."""
        return self._delayed_row_s / self._delayed_rows if self._delayed_rows else None

    @property
    def mean_target_s(self) -> float:
        """The target that was in force, averaged over the same rows; the current one before the first of them."""
        return self._promised_row_s / self._delayed_rows if self._delayed_rows else self.target.max_delay_s

    def threshold(self, shed_ratio: float) -> Threshold:
        """The utility below which rows are shed to meet a ratio; below all of them if rows are shed at random."""
        return KEEP_ALL if self.spec.shed_by is None else self.utilities.threshold(shed_ratio)

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to continue after a restart, as JSON."""
        return {
            "batch": self.last_batch,
            "ledger": self.ledger.as_json(),
            "controller": self.controller.snapshot(),
            "delayed_row_s": self._delayed_row_s,
            "delayed_rows": self._delayed_rows,
            "promised_row_s": self._promised_row_s,
        }


def decide_together(trackers: Sequence[TimelinessTracker], parts: Sequence[MicroBatch]) -> list[ShedDecision]:
    """One decision for the streams of a micro-batch that share a controller, as each of them reports it.

    The shortest of their targets decides.
    """
    controller = trackers[0].controller
    shortest = min((tracker.target for tracker in trackers), key=lambda target: target.max_delay_s)
    controller.retarget(shortest)
    whole = together(parts)
    decision = controller.step(whole)
    return [
        decision_for(part, whole, decision, tracker.target == shortest)
        for tracker, part in zip(trackers, parts, strict=True)
    ]
