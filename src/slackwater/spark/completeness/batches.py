"""What a completeness promise learns from one micro-batch, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.control.ledger import Ledger
from slackwater.spark.completeness.histogram import Cells
from slackwater.watching.point import Lateness


@dataclass(frozen=True, slots=True)
class BatchObservation:
    """What one committed micro-batch reported about its rows.

    ``heartbeat_ms`` judged the rows (None: no heartbeat yet). ``reference_ms`` is the zero of the histogram's margins
    (None: each row was measured from its own arrival). ``clock_ms`` is the arrival clock at the end of the batch,
    ``reported_at_ms`` the time at which it was planned, ``took_ms`` how long it took from then to its commit,
    ``chosen_at_ms`` the arrival clock at which its heartbeat was chosen and ``decided_at_ms`` that of the decision
    (None: unknown). ``began_ms`` is the arrival of the first row (None: unknown).
    ``source_heartbeats_ms`` are the highest heartbeats that the stream itself carried, by source. ``misread``: the
    rows were not read exactly once, as far as one can tell. ``lateness`` are the rows by the cell of their lateness;
    None if every row arrived at the time of the micro-batch. ``late_in_slack`` rows were not below the heartbeat, but
    late for the slack buffer. ``follows_rows``: the rows of the batch before this one may have raised the heartbeat.
    """

    batch_id: int
    heartbeat_ms: float | None
    reference_ms: float | None
    clock_ms: float
    cells: Cells
    reported_at_ms: float
    state_rows: int
    source_names: dict[int, str] = field(default_factory=dict)
    source_heartbeats_ms: dict[int | None, float] = field(default_factory=dict)
    chosen_at_ms: float | None = None
    decided_at_ms: float | None = None
    began_ms: float | None = None
    took_ms: float = 0.0
    misread: bool = False
    late_in_slack: int = 0
    lateness: tuple[tuple[int | None, int], ...] | None = None
    follows_rows: bool = False


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of one micro-batch.

    ``sources`` are those furthest behind: name, rows, and how far the freshest row is behind the clock in milliseconds.
    ``losses`` are the sources with the most late and invalid rows: name, late rows, invalid rows. ``open_rows`` are in
    windows that the heartbeat has not closed yet.
    """

    batch_id: int
    clock_ms: float
    heartbeat_ms: float | None
    wait_ms: float | None
    ledger: Ledger
    cause: str
    lateness: Lateness | None = None
    run_lateness_ms: tuple[float, ...] | None = None
    recent_lateness_ms: tuple[float, ...] | None = None
    span_ms: float | None = None
    sources: tuple[tuple[str, int, float], ...] = ()
    losses: tuple[tuple[str, int, int], ...] = ()
    open_rows: int = 0
