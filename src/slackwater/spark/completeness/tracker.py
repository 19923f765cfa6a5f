"""Keeps one completeness promise for one running query: an observed micro-batch in, a heartbeat out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slackwater.control.arrival_clock import ArrivalClock
from slackwater.control.choice import Method
from slackwater.control.disorder import Batch, Cause, DisorderController, make_method
from slackwater.control.disorder.cause import STREAM_ENDED
from slackwater.control.ledger import Ledger
from slackwater.control.policy import LiveClock, Policy
from slackwater.promises import Completeness
from slackwater.spark.completeness.batches import BatchObservation, BatchOutcome
from slackwater.spark.completeness.histogram import Cells
from slackwater.spark.completeness.lateness import LatenessHistory
from slackwater.spark.completeness.open_windows import OpenRows, WindowGrid
from slackwater.spark.runtime.row_flow import RowFlow
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.units import MINUTE_MS
from slackwater.watching.point import Lateness

_MOST_SOURCES = 20
_MOST_LOSSES = 20
_MOST_NAMES = 1000
_COARSE_FROM_ROWS = 100_000
"""A micro-batch this large has some 400 probes. If too few of them differ, its event times are coarse."""


class Recounts(Protocol):
    """Counts micro-batches that were committed but not reported."""

    def count(self, spec: CompletenessSpec, checkpoint: str, batch: int, position: int) -> Ledger:
        """The rows of a micro-batch; raises if they cannot be told again."""


@dataclass(frozen=True, slots=True)
class CompletenessSpec:
    """A completeness promise as it was made on a DataFrame.

    ``numeric_order``: the stream is ordered by a number, so silence does not mean that time passes. ``flow`` says which
    rows of the sources reach the promise; None if that is not known. ``slack_by_row``: a slack buffer judges every row,
    so a heartbeat must not be above that of the buffer. ``recount`` counts micro-batches again; None if that is not
    possible. ``grid`` is where the windows of the query lie. ``follows_rows``: rows can raise the heartbeat, and do so
    in a query that has no other promise.
    """

    name: str
    event_time: str
    completeness: Completeness
    method: Method
    sources: list[str]
    mailbox: Mailbox
    numeric_order: bool = False
    flow: RowFlow | None = None
    slack_by_row: bool = False
    recount: Recounts | None = None
    grid: WindowGrid = field(default_factory=WindowGrid)
    follows_rows: bool = False

    @property
    def folder(self) -> Path:
        """Where the promise keeps its files."""
        return self.mailbox.series_folder

    def new_controller(self) -> DisorderController:
        """A controller that has learned nothing yet; refuses an unknown method or option."""
        method = make_method(self.method.name, self.completeness, **self.method.options)
        return DisorderController(self.completeness, method)


@dataclass(slots=True)
class CompletenessTracker:
    """Controller and ledger of one promise in one query; no Spark, no clock, no I/O.

    ``latest`` is the last outcome under a heartbeat. ``unreported`` are the micro-batches
    that are in no count yet. ``sample_cells`` asks for a sampled histogram in the next
    micro-batch. ``policy`` gives the heartbeat for a micro-batch that is planned later; None before the first rows.
    ``follows_rows``: in the last micro-batch, rows could raise it.
    """

    spec: CompletenessSpec
    query_id: str
    epoch: str
    controller: DisorderController = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    last_batch: int = -1
    unreported: list[int] = field(default_factory=list)
    sample_cells: bool = False
    latest: BatchOutcome | None = None
    policy: Policy | None = None
    follows_rows: bool = False
    _live_clock: LiveClock = field(default_factory=LiveClock)
    _arrival_clock: ArrivalClock = field(init=False)
    _clock_ms: float = math.nan
    _clock_reported_at_ms: float = math.nan
    _batches_with_rows: int = 0
    _state_rows: int = 0
    _coarse_event_times: bool = False
    _source_names: dict[int, str] = field(default_factory=dict)
    _waited_row_ms: float = 0.0
    _waited_rows: int = 0
    _newest_ms: float = -math.inf
    _lateness: LatenessHistory = field(default_factory=LatenessHistory)
    _open_rows: OpenRows = field(default_factory=OpenRows)
    _stream_ended: bool = False

    def __post_init__(self) -> None:
        self.controller = self.spec.new_controller()
        promise = self.spec.completeness
        self._arrival_clock = ArrivalClock(promise.drop_ratio, promise.idle_after_ms)

    def resume(self, snapshot: dict[str, Any] | None, offset: HeartbeatOffset, next_batch: int) -> None:
        """Continue after a restart, from the snapshot if there is one and from the checkpoint's offset.

        The newer of the two ledgers counts: the snapshot may come from an older copy of the promise's folder.
        """
        if snapshot is not None and snapshot["batch"] < next_batch:
            self.controller.resume(snapshot["controller"])
            self.ledger = Ledger.from_json(snapshot["ledger"])
            self.last_batch = snapshot["batch"]
            self._arrival_clock.resume(snapshot.get("arrival_clock", {}))
            self._waited_row_ms, self._waited_rows = snapshot["waited_row_ms"], snapshot["waited_rows"]
            self._source_names = {int(number): name for number, name in snapshot.get("source_names", {}).items()}
            newest_ms = snapshot.get("newest_ms")
            self._newest_ms = -math.inf if newest_ms is None else newest_ms
            self._open_rows.resume(snapshot.get("open_rows", [[], []]))
            self._lateness.resume(snapshot.get("lateness", []))
            self.unreported = list(snapshot.get("unreported", []))
        if offset.ledger is not None and offset.batch > self.last_batch:
            self.ledger = Ledger.from_json(offset.ledger)
            self.last_batch = offset.batch
        if offset.heartbeat_ms is not None:
            self.controller.raise_to(offset.heartbeat_ms)
        self._miss_until(next_batch)

    def _miss_until(self, batch_id: int) -> None:
        """Note that the micro-batches before this one have been committed, and that nothing is known of them."""
        missed = range(self.last_batch + 1, batch_id)
        self.unreported += missed
        self.ledger += Ledger(unreported_batches=len(missed))
        self.last_batch = max(self.last_batch, batch_id - 1)

    def on_recount(self, batch_id: int, counted: Ledger) -> None:
        """Add the rows of a micro-batch that was unreported."""
        if batch_id in self.unreported:
            self.unreported.remove(batch_id)
            self.ledger += counted - Ledger(unreported_batches=1)

    def on_batch(self, observed: BatchObservation) -> BatchOutcome | None:
        """Learn from a committed micro-batch and decide the next heartbeat; None for a repeated batch."""
        if observed.batch_id <= self.last_batch:
            return None
        cells, rows = observed.cells, observed.cells.rows
        self._miss_until(observed.batch_id)  # Spark drops events that it cannot deliver in time
        self.last_batch = observed.batch_id
        self._state_rows, self.follows_rows = observed.state_rows, observed.follows_rows
        if len(self._source_names) < _MOST_NAMES:
            self._source_names |= observed.source_names
        self._coarse_event_times |= cells.unplaced > 0 and rows >= _COARSE_FROM_ROWS
        self.sample_cells = cells.can_be_sampled and not self.spec.numeric_order and not self._coarse_event_times
        late = observed.late_in_slack + (0 if observed.heartbeat_ms is None else cells.below)
        if observed.heartbeat_ms is not None:
            self.controller.raise_to(observed.heartbeat_ms)
        self.ledger += Ledger(rows - late, late, invalid=cells.invalid, misread_batches=int(observed.misread))
        cause, lateness, sources = self._learn_rows(observed, late) if rows else ("no rows", None, ())
        if rows:
            self._count_open_rows(observed)
        if observed.lateness is not None:
            self._lateness.add_cells(observed.reported_at_ms, observed.lateness)
        if self._stream_ended:
            cause = self._text(STREAM_ENDED)
        if observed.source_heartbeats_ms:
            cause = self._learn_source_heartbeats(observed.source_heartbeats_ms)
        wait_ms = None
        if observed.heartbeat_ms is not None:
            self._open_rows.forget_below(self.spec.grid.open_from_ms(observed.heartbeat_ms))
        # The heartbeat that ends a stream is no wait.
        if observed.heartbeat_ms is not None and not self._stream_ended:
            wait_ms = self._clock_ms - observed.heartbeat_ms
            self._waited_row_ms += rows * wait_ms
            self._waited_rows += rows
        outcome = BatchOutcome(
            observed.batch_id,
            self._clock_ms,
            observed.heartbeat_ms,
            wait_ms,
            self.ledger,
            cause,
            lateness,
            self._lateness.run_ms(),
            self._lateness.recent_ms(),
            None if observed.began_ms is None else max(0.0, observed.clock_ms - observed.began_ms),
            sources,
            self._losses(cells, late > 0),
            self._open_rows.count,
        )
        if wait_ms is not None:
            self.latest = outcome
        return outcome

    def _count_open_rows(self, observed: BatchObservation) -> None:
        cells = observed.cells
        reference_ms = self._clock_ms if observed.reference_ms is None else observed.reference_ms
        values_ms = reference_ms + cells.margins_us / 1000.0
        newest_ms = reference_ms + cells.newest_us / 1000.0
        # A sample may miss the newest row, which is rarely above the clock.
        sampled = cells.sampled or cells.unplaced > 0
        self._newest_ms = max(self._newest_ms, newest_ms, self._clock_ms if sampled else -math.inf)
        on_time = cells.margins_us >= (-math.inf if observed.heartbeat_ms is None else 0.0)
        self._open_rows.add(values_ms[on_time], cells.counts[on_time])

    def end_stream(self) -> None:
        """No row comes after those observed: raise the heartbeat above every window that holds one of them."""
        if math.isinf(self._newest_ms):
            return
        self._stream_ended = True
        self.controller.raise_to(self.spec.grid.end_of_stream_ms(self._newest_ms))
        clock_ms = self._newest_ms if math.isnan(self._clock_ms) else self._clock_ms
        self.policy = Policy(clock_ms, 0.0, self.controller.heartbeat)

    @property
    def open_rows(self) -> int:
        """How many rows are in windows that the heartbeat in force has not closed."""
        return self._open_rows.count

    @property
    def open_windows(self) -> int | None:
        """How many windows are open, if each of them has rows; None if that is not known."""
        judging_ms = None if self.latest is None else self.latest.heartbeat_ms
        if judging_ms is None or not self._open_rows.count:
            return None
        return self.spec.grid.open_windows(judging_ms, self._newest_ms)

    @property
    def stream_ended(self) -> bool:
        """Whether the heartbeat has closed every window because the stream has ended."""
        return self._stream_ended

    def miss_batch(self, batch_id: int) -> None:
        """Note a committed micro-batch whose rows nobody has counted; they can be counted again."""
        self._miss_until(batch_id + 1)

    def skip_batch(self, batch_id: int) -> None:
        """Count a committed micro-batch as unreported: its rows were not judged by this query's heartbeat."""
        if batch_id > self.last_batch:
            self._miss_until(batch_id)
            self.last_batch = batch_id
            self.ledger += Ledger(unreported_batches=1)

    def _learn_rows(
        self, observed: BatchObservation, late: int
    ) -> tuple[str, Lateness | None, tuple[tuple[str, int, float], ...]]:
        """Move the clock and learn from the rows; the cause of the decision, their lateness, the slowest sources.

        Before the first report there is no reference, and rows are measured from their own arrivals. That lateness is
        at least the effective one. An order number has no arrival of its own, and a slack buffer needs the values
        themselves, so their first batch teaches only the clock.
        """
        order_unknown = not self._arrival_clock.has_started and self._is_backlog(observed)
        before_ms = self._move_clock(observed)
        self._clock_reported_at_ms = observed.reported_at_ms
        self._live_clock.observe(self._clock_ms, observed.reported_at_ms, observed.took_ms)
        if observed.reference_ms is None and (self.spec.numeric_order or self.spec.slack_by_row):
            self.policy = Policy(self._clock_ms, observed.reported_at_ms, self.controller.heartbeat)
            return "first batch", None, ()
        cells = observed.cells
        if not len(cells.counts):
            return "too few different event times for a sampled histogram", None, ()
        reference_ms, chosen_at_ms, decided_at_ms = observed.reference_ms, observed.chosen_at_ms, observed.decided_at_ms
        if reference_ms is None:
            reference_ms = chosen_at_ms = self._clock_ms
        elif observed.follows_rows:
            chosen_at_ms = decided_at_ms = before_ms
        elif observed.heartbeat_ms is None:
            # Nothing judged the rows before the first heartbeat. A fresh one would have known the clock before them.
            chosen_at_ms = before_ms
        observed = replace(observed, chosen_at_ms=chosen_at_ms, decided_at_ms=decided_at_ms)
        cause = self._learn_cells(observed, reference_ms, late, decides=not order_unknown)
        behind_ms = self._clock_ms - reference_ms - cells.margins_us / 1000.0
        if observed.lateness is None:
            self._lateness.add_lateness(observed.reported_at_ms, behind_ms, cells.counts)
        return cause, Lateness.of(behind_ms, cells.counts), self._furthest_behind(cells, behind_ms)

    def _is_backlog(self, observed: BatchObservation) -> bool:
        """Whether a batch spans so much arrival time that its partitions may be at very different times."""
        began_ms = observed.began_ms
        return not self.spec.numeric_order and began_ms is not None and observed.clock_ms - began_ms > MINUTE_MS

    def _move_clock(self, observed: BatchObservation) -> float | None:
        """Move the arrival clock; return where it was, None if nobody knows.

        The second batch may show that the clock of the first was too far ahead: a partition is behind. Nothing was
        judged by it yet, and what was learned under it is of no use.
        """
        before_ms = None if math.isnan(self._clock_ms) else self._clock_ms
        newest_ms, cells = observed.clock_ms, observed.cells
        if not self.spec.numeric_order:
            reference_ms = newest_ms if observed.reference_ms is None else observed.reference_ms
            values_ms = reference_ms + cells.margins_us / 1000.0
            newest_ms = self._arrival_clock.observe(
                newest_ms, observed.began_ms, values_ms, cells.counts, observed.reported_at_ms
            )
        self._batches_with_rows += 1
        unjudged = not math.isfinite(self.controller.heartbeat)
        if before_ms is not None and newest_ms < before_ms and unjudged and self._batches_with_rows == 2:
            self.controller = self.spec.new_controller()
            self._clock_ms = newest_ms
            return newest_ms
        self._clock_ms = newest_ms if before_ms is None else max(newest_ms, before_ms)
        return before_ms

    def _learn_cells(self, observed: BatchObservation, reference_ms: float, late: int, *, decides: bool) -> str:
        cells = observed.cells
        values = reference_ms + cells.margins_us / 1000.0
        order = np.argsort(values, kind="stable")
        self.controller.observe(
            Batch(
                values[order],
                weights=cells.counts[order],
                sources=None if cells.sources is None else cells.sources[order],
                clock=self._clock_ms,
                reference=observed.chosen_at_ms,
                decided_at=observed.decided_at_ms,
                began=observed.began_ms,
                late=late,
                follows_rows=observed.follows_rows,
                wall=observed.reported_at_ms if self.spec.numeric_order else None,
            )
        )
        if not decides:
            self.policy = Policy(self._clock_ms, self._clock_reported_at_ms, self.controller.heartbeat)
            return "first batch of a backlog"
        return self._decide(self._clock_ms, 0.0 if self.spec.numeric_order else self._live_clock.reach)

    def _decide(self, clock_ms: float | None, reach_ms: float) -> str:
        """Decide for this clock, which may run on by ``reach_ms`` until the next decision; the cause in words."""
        decision = self.controller.decide(clock_ms)
        if self._stream_ended:
            return self._text(STREAM_ENDED)
        policy = decision.policy(self._clock_reported_at_ms, reach_ms)
        if policy is not None and policy.room is not None and self._arrival_clock.is_held:
            # Arrivals are ahead of the clock then.
            policy = replace(policy, room=replace(policy.room, ceiling=decision.heartbeat))
        self.policy = policy
        return self._text(decision.cause)

    def _text(self, cause: Cause) -> str:
        return cause.text(self._source_name)

    def _source_name(self, source: int) -> str:
        """The values of a source's columns once they are known, else its number."""
        return self._source_names.get(source, f"with hash {source}")

    def _furthest_behind(self, cells: Cells, behind_ms: NDArray[np.float64]) -> tuple[tuple[str, int, float], ...]:
        if cells.sources is None:
            return ()
        numbers, index = np.unique(cells.sources, return_inverse=True)
        rows = np.bincount(index, weights=cells.counts).astype(int)
        freshest = np.full(len(numbers), np.inf)
        np.minimum.at(freshest, index, behind_ms)
        slowest = np.argsort(-freshest, kind="stable")[:_MOST_SOURCES]
        return tuple((self._source_name(int(numbers[i])), int(rows[i]), round(float(freshest[i]), 3)) for i in slowest)

    def _losses(self, cells: Cells, some_are_late: bool) -> tuple[tuple[str, int, int], ...]:
        """The sources that lost most rows."""
        if cells.sources is None:
            return ()
        lost = {source: (0, rows) for source, rows in cells.invalid_by_source}
        if some_are_late:
            below = cells.margins_us < 0
            numbers, index = np.unique(cells.sources[below], return_inverse=True)
            late_rows = np.bincount(index, weights=cells.counts[below]).astype(int)
            for source, rows in zip(numbers.tolist(), late_rows.tolist(), strict=True):
                lost[source] = (rows, lost.get(source, (0, 0))[1])
        most = sorted(lost.items(), key=lambda item: -sum(item[1]))[:_MOST_LOSSES]
        return tuple((self._source_name(source), late, invalid) for source, (late, invalid) in most)

    def _learn_source_heartbeats(self, heartbeats_ms: dict[int | None, float]) -> str:
        """Take over heartbeats that the stream itself carried; the cause of the decision."""
        clock = None if math.isnan(self._clock_ms) else self._clock_ms
        sources = [source for source in heartbeats_ms if source is not None]
        self.controller.observe(
            Batch(
                np.empty(0),
                punctuations=np.array(list(heartbeats_ms.values())),
                punctuation_sources=np.array(sources, dtype=np.int64) if sources else None,
                clock=clock,
            )
        )
        return self._decide(clock, 0.0)

    def on_idle(self, now_ms: float) -> None:
        """Let the arrival clock run on while Spark finds no rows."""
        if self.spec.numeric_order or self._stream_ended or math.isnan(self._clock_ms) or self._state_rows == 0:
            return
        self._clock_ms = max(self._clock_ms, self._arrival_clock.release())
        self._decide(self._clock_ms + max(0.0, now_ms - self._clock_reported_at_ms), reach_ms=0.0)

    @property
    def heartbeat_ms(self) -> int | None:
        """The heartbeat decided for this query, in whole milliseconds."""
        decided = self.controller.heartbeat
        return math.floor(decided) if math.isfinite(decided) else None

    @property
    def clock_ms(self) -> int | None:
        """The arrival clock after the last batch with rows, in whole milliseconds."""
        return None if math.isnan(self._clock_ms) else math.floor(self._clock_ms)

    @property
    def mean_wait_ms(self) -> float | None:
        """The wait averaged over all rows."""
        return self._waited_row_ms / self._waited_rows if self._waited_rows else None

    def checkpoint_state(self) -> dict[str, Any]:
        """What goes into Spark's checkpoint beside the heartbeat."""
        return {"batch": self.last_batch, "ledger": self.ledger.counts()}

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to continue after a restart, as JSON."""
        return {
            "batch": self.last_batch,
            "ledger": self.ledger.counts(),
            "controller": self.controller.snapshot(),
            "waited_row_ms": self._waited_row_ms,
            "waited_rows": self._waited_rows,
            "source_names": self._source_names,
            "arrival_clock": self._arrival_clock.snapshot(),
            "newest_ms": self._newest_ms if math.isfinite(self._newest_ms) else None,
            "open_rows": self._open_rows.snapshot(),
            "lateness": self._lateness.snapshot(),
            "unreported": self.unreported,
        }
