"""Compares methods on one trace: late rows against the promise, waits against the clairvoyant wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slackwater.control.disorder import DisorderController, make_method, method_names
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, clairvoyant_wait, run
from slackwater.sim.spark_batches import SparkBatches, beside_spark, run_on_spark
from slackwater.sim.trace import Trace

DEFAULT_RATIOS = (0.05, 0.01, 0.001)
NEEDS_PUNCTUATIONS = "source-heartbeat"


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome of one method at one drop ratio on one trace. Waits are in the unit of the trace.

    ``rows_per_s`` is per second of processor time, so the load of the machine does not affect it. The last three are
    None unless the run was under Spark's conditions: the mean wait under the best constant delay for ``withWatermark``
    in the same micro-batches, and the mean time from a window's end to its publication, of the method and of that
    constant.
    """

    method: str
    target_drop_ratio: float
    rows: int
    late: int
    mean_wait: float
    median_wait: float
    p90_wait: float
    p99_wait: float
    mean_buffer_rows: float
    clairvoyant_wait: float
    rows_per_s: float
    best_constant_wait: float | None = None
    mean_publication_delay: float | None = None
    best_constant_publication_delay: float | None = None

    @property
    def drop_ratio(self) -> float:
        """The share of late rows, counted from the first row on."""
        return self.late / self.rows if self.rows else 0.0

    @property
    def kept(self) -> bool:
        """Whether the promise was kept, without tolerance."""
        return Completeness(self.target_drop_ratio).kept_by(self.late, self.rows - self.late)

    @property
    def budget_used(self) -> float | None:
        """The drop ratio as a share of the promised one; None for best effort."""
        return self.drop_ratio / self.target_drop_ratio if self.target_drop_ratio > 0 else None

    @property
    def wait_ratio(self) -> float | None:
        """The mean wait as a multiple of the best constant's in the same micro-batches, else of the clairvoyant wait.

        None if that is zero.
        """
        best = self.clairvoyant_wait if self.best_constant_wait is None else self.best_constant_wait
        return self.mean_wait / best if best > 0 else None

    def as_json(self, unit: str, per_unit: float) -> dict[str, Any]:
        """The cell as a JSON object. Waits are divided by ``per_unit``; ``unit`` is the name of that unit."""

        def in_unit(time: float | None) -> float | None:
            return None if time is None else time / per_unit

        return {
            "method": self.method,
            "target_drop_ratio": self.target_drop_ratio,
            "drop_ratio": self.drop_ratio,
            "mean_wait_s": self.mean_wait / per_unit,
            "median_wait_s": self.median_wait / per_unit,
            "p90_wait_s": self.p90_wait / per_unit,
            "p99_wait_s": self.p99_wait / per_unit,
            "mean_buffer_rows": self.mean_buffer_rows,
            "clairvoyant_wait_s": self.clairvoyant_wait / per_unit,
            "best_constant_wait_s": in_unit(self.best_constant_wait),
            "mean_publication_delay_s": in_unit(self.mean_publication_delay),
            "best_constant_publication_delay_s": in_unit(self.best_constant_publication_delay),
            "budget_used": self.budget_used,
            "rows": self.rows,
            "unit": unit,
        }


def methods_for(trace: Trace) -> list[str]:
    """All methods that can run on the trace: ``source-heartbeat`` needs punctuations."""
    return [name for name in method_names() if name != NEEDS_PUNCTUATIONS or trace.punctuations is not None]


def compare(
    trace: Trace,
    methods: Sequence[str] | None = None,
    drop_ratios: Sequence[float] = DEFAULT_RATIOS,
    batches: Batches | SparkBatches | None = None,
) -> Iterator[Cell]:
    """Run each method at each ratio over the trace, one cell at a time. There is no warm-up: all rows count.

    With ``SparkBatches`` the methods run under Spark's conditions.
    """
    batches = Batches.every(trace) if batches is None else batches
    for drop_ratio in drop_ratios:
        best = clairvoyant_wait(trace, drop_ratio)
        for name in methods_for(trace) if methods is None else methods:
            promise = Completeness(drop_ratio)
            began = time.process_time()
            controller = DisorderController(promise, make_method(name, promise))
            beside: tuple[float | None, ...] = ()
            if isinstance(batches, SparkBatches):
                outcome = run_on_spark(trace, controller, batches)
                took_s = time.process_time() - began
                beside = beside_spark(trace, batches, outcome, drop_ratio, best)
            else:
                outcome = run(trace, controller, batches)
                took_s = time.process_time() - began
            yield Cell(
                name,
                drop_ratio,
                outcome.rows,
                outcome.late,
                outcome.mean_wait,
                outcome.median_wait,
                outcome.p90_wait,
                outcome.p99_wait,
                outcome.mean_buffer_rows,
                best,
                outcome.rows / took_s if took_s > 0 else 0.0,
                *beside,
            )
