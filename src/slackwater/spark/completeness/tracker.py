"""Keeps one promise for one running query: what a micro-batch reported in, a heartbeat out."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.choice import Method
from slackwater.control.disorder import Batch, DisorderController, make_method
from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.completeness.histogram import Cells
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.watching.point import Lateness

_REMEMBERED_BATCHES = 1000
_MOST_SOURCES = 20
_MOST_NAMES = 1000
_COARSE_FROM_ROWS = 100_000
"""In so many rows some 400 probes are expected: if they do not differ, event times do not."""


@dataclass(frozen=True, slots=True)
class CompletenessSpec:
    """A promise as it was made on a DataFrame."""

    name: str
    event_time: str
    completeness: Completeness
    method: Method
    sources: list[str]
    mailbox: Mailbox
    numeric_order: bool = False  # ordered by a number: silence says nothing about what is still to come

    def new_controller(self) -> DisorderController:
        """A controller that knows nothing yet."""
        return DisorderController(
            self.completeness, make_method(self.method.name, self.completeness, **self.method.options)
        )


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one micro-batch said about its rows.

    ``heartbeat_ms`` is the one that judged them (None: none yet), ``reference_ms`` what their cells are measured
    from (None: each row's own arrival), ``clock_ms`` the arrival clock at its end.
    """

    batch_id: int
    heartbeat_ms: float | None
    reference_ms: float | None
    clock_ms: float
    cells: Cells
    reported_at_ms: float
    state_rows: int
    source_names: dict[int, str] = field(default_factory=dict)
    punctuation_ms: float | None = None  # the highest heartbeat that the stream itself carried


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One line of a query's history.

    ``sources`` are those furthest behind: a source's number, its rows, and how far its freshest is behind the clock.
    """

    batch_id: int
    clock_ms: float
    heartbeat_ms: float | None
    wait_ms: float | None
    ledger: Ledger
    cause: str
    lateness: Lateness | None = None
    sources: tuple[tuple[str, int, float], ...] = ()


@dataclass(slots=True)
class CompletenessTracker:
    """Controller, ledger and history of one promise in one query; no Spark, no clock, no I/O."""

    spec: CompletenessSpec
    query_id: str
    epoch: str
    controller: DisorderController = field(init=False)
    ledger: Ledger = field(default_factory=Ledger)
    last_batch: int = -1
    sample_cells: bool = False
    """Whether the next micro-batch is to be told of by a part of its rows."""
    history: deque[BatchRecord] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))
    _clock_ms: float = math.nan
    _clock_reported_at_ms: float = math.nan
    _state_rows: int = 0
    _coarse: bool = False
    _source_names: dict[int, str] = field(default_factory=dict)
    _waited_row_ms: float = 0.0
    _waited_rows: int = 0

    def __post_init__(self) -> None:
        self.controller = self.spec.new_controller()

    def resume(self, snapshot: dict[str, Any] | None, offset: dict[str, Any], next_batch: int) -> None:
        """Go on where the query was: from its snapshot if there is one, and from what the checkpoint holds.

        The ledger is the newer of both, since the snapshot may be out of an older copy of the promise's folder.
        """
        if snapshot is not None and snapshot["batch"] < next_batch:
            self.controller.resume(snapshot["controller"])
            self.ledger = Ledger.from_json(snapshot["ledger"])
            self.last_batch = snapshot["batch"]
            self._waited_row_ms, self._waited_rows = snapshot["waited"]
            self._source_names = {int(number): name for number, name in snapshot.get("source_names", {}).items()}
        if "ledger" in offset and offset["batch"] > self.last_batch:
            self.ledger = Ledger.from_json(offset["ledger"])
            self.last_batch = offset["batch"]
        if offset["heartbeat"] is not None:
            self.controller.raise_to(offset["heartbeat"])
        unreported = next_batch - self.last_batch - 1
        if unreported > 0:
            self.ledger += Ledger(unreported_batches=unreported)

    def on_batch(self, report: BatchReport) -> None:
        """Learn from a committed micro-batch and decide the heartbeat of a later one; a repetition is ignored."""
        if report.batch_id <= self.last_batch:
            return
        self.last_batch = report.batch_id
        self._state_rows = report.state_rows
        if len(self._source_names) < _MOST_NAMES:
            self._source_names |= report.source_names
        cells = report.cells
        rows = cells.rows
        self._coarse = self._coarse or (cells.unplaced > 0 and rows >= _COARSE_FROM_ROWS)
        self.sample_cells = cells.can_be_sampled and not self.spec.numeric_order and not self._coarse
        late = 0 if report.heartbeat_ms is None else cells.below
        self.ledger += Ledger(on_time=rows - late, late=late, invalid=cells.invalid)
        cause, lateness = "no rows", None
        sources: tuple[tuple[str, int, float], ...] = ()
        if rows:
            self._clock_ms = report.clock_ms if math.isnan(self._clock_ms) else max(report.clock_ms, self._clock_ms)
            self._clock_reported_at_ms = report.reported_at_ms
            if report.reference_ms is None:
                cause = "first batch"
            elif not len(cells.counts):
                cause = "too few different event times to go by a part of the rows"
            else:
                cause = self._learn(report.reference_ms, cells, late)
                behind_ms = self._clock_ms - report.reference_ms - cells.margins_us / 1000.0
                lateness, sources = Lateness.of(behind_ms, cells.counts), self._furthest_behind(cells, behind_ms)
        if report.punctuation_ms is not None:
            cause = self._hear(report.punctuation_ms)
        wait_ms = None
        if report.heartbeat_ms is not None:
            wait_ms = self._clock_ms - report.heartbeat_ms
            self._waited_row_ms += rows * wait_ms
            self._waited_rows += rows
        self.history.append(
            BatchRecord(
                report.batch_id,
                self._clock_ms,
                report.heartbeat_ms,
                wait_ms,
                self.ledger,
                cause,
                lateness,
                sources,
            )
        )

    def pass_over(self, batch_id: int) -> None:
        """A committed micro-batch whose rows were not judged by this query's heartbeat: they are in no count."""
        if batch_id > self.last_batch:
            self.last_batch = batch_id
            self.ledger += Ledger(unreported_batches=1)

    def _learn(self, reference_ms: float, cells: Cells, late: int) -> str:
        """Observe and decide; why it was decided so.

        Of a first batch only the clock is learned: its rows could only be placed by their own arrivals, which may
        be hours apart where a query starts on a backlog.
        """
        values = reference_ms + cells.margins_us / 1000.0
        order = np.argsort(values, kind="stable")
        sources = None if cells.sources is None else cells.sources[order]
        self.controller.observe(
            Batch(values[order], weights=cells.counts[order], sources=sources, clock=self._clock_ms, late=late)
        )
        return self.controller.decide(self._clock_ms).cause.text(self._name)

    def _name(self, source: int) -> str:
        """What a person calls a source: its columns once they are known, else its number."""
        return self._source_names.get(source, str(source))

    def _furthest_behind(self, cells: Cells, behind_ms: NDArray[np.float64]) -> tuple[tuple[str, int, float], ...]:
        if cells.sources is None:
            return ()
        numbers, where = np.unique(cells.sources, return_inverse=True)
        rows = np.bincount(where, weights=cells.counts).astype(int)
        freshest = np.full(len(numbers), np.inf)
        np.minimum.at(freshest, where, behind_ms)
        chosen = np.argsort(-freshest, kind="stable")[:_MOST_SOURCES]
        return tuple((self._name(int(numbers[i])), int(rows[i]), round(float(freshest[i]), 3)) for i in chosen)

    def _hear(self, punctuation_ms: float) -> str:
        """The stream has spoken for itself; why the heartbeat is what it is now."""
        clock = None if math.isnan(self._clock_ms) else self._clock_ms
        self.controller.observe(Batch(np.empty(0), punctuations=np.array([punctuation_ms]), clock=clock))
        return self.controller.decide(clock).cause.text(self._name)

    def on_idle(self, now_ms: float) -> None:
        """Spark looked for rows and found none: time passes on the arrival clock all the same."""
        if self.spec.numeric_order or math.isnan(self._clock_ms) or self._state_rows == 0:
            return
        self.controller.decide(self._clock_ms + max(0.0, now_ms - self._clock_reported_at_ms))

    @property
    def heartbeat_ms(self) -> int | None:
        """The heartbeat that this query could bear, in whole milliseconds."""
        decided = self.controller.heartbeat
        return math.floor(decided) if math.isfinite(decided) else None

    @property
    def clock_ms(self) -> int | None:
        """The arrival clock as last heard, in whole milliseconds."""
        return None if math.isnan(self._clock_ms) else math.floor(self._clock_ms)

    @property
    def mean_wait_ms(self) -> float | None:
        """How long rows were held back for stragglers, on average over the rows."""
        return self._waited_row_ms / self._waited_rows if self._waited_rows else None

    def checkpoint_state(self) -> dict[str, Any]:
        """What goes into Spark's checkpoint beside the heartbeat."""
        return {"batch": self.last_batch, "ledger": self.ledger.as_json()}

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on after a restart, as JSON."""
        return {
            "batch": self.last_batch,
            "ledger": self.ledger.as_json(),
            "controller": self.controller.snapshot(),
            "waited": [self._waited_row_ms, self._waited_rows],
            "source_names": self._source_names,
        }
