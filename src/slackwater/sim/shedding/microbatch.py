"""A simulated micro-batch engine with a trigger interval, a fixed cost per batch and a cost per row, like Spark."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController, ShedDecision
from slackwater.promises import Timeliness
from slackwater.sim.shedding.run import Outcome

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatchRun:
    """The delay of every row (NaN if it was shed), the batches, and the decision after each batch."""

    delays_s: Floats
    batches: list[MicroBatch] = field(default_factory=list)
    decisions: list[ShedDecision] = field(default_factory=list)

    @property
    def loss_ratio(self) -> float:
        """The share of rows that were shed."""
        return float(np.isnan(self.delays_s).mean())

    def outcome(self, law: str, arrivals_s: Floats, target_s: float, period_s: float) -> Outcome:
        """The run in the form of a queue simulation, with signals per ``period_s``."""
        periods = int(arrivals_s[-1] / period_s) + 1
        ends_s = (np.arange(periods) + 1) * period_s
        starts_s = np.array([batch.started_s for batch in self.batches])
        shed = np.array([1.0 - batch.kept / batch.rows for batch in self.batches])
        # the rows of a period are read by the first batch that starts after it
        reader = np.minimum(np.searchsorted(starts_s, ends_s), len(starts_s) - 1)
        waiting = np.searchsorted(arrivals_s, ends_s) - np.searchsorted(arrivals_s, starts_s[np.maximum(reader - 1, 0)])
        signals = {"shed_ratio": shed[reader], "backlog": waiting.astype(np.float64)}
        return Outcome(law, arrivals_s, self.delays_s, np.full(len(arrivals_s), target_s), period_s, signals)


def run_micro_batches(
    law: str,
    arrivals_s: Floats,
    *,
    target_s: float,
    trigger_s: float,
    fixed_s: float,
    cost_s: float | Callable[[Floats], Floats],
    noise: float = 0.0,
    lag: int = 0,
    limit: int | None = None,
    reports_lag: bool = True,
    seed: int = 0,
    **options: Any,
) -> MicroBatchRun:
    """Run a law until the last row has been processed.

    - ``cost_s``: the cost of a row, or a function from arrival times to the cost of each row.
    - ``noise``: the coefficient of variation of the duration of a batch.
    - ``lag``: the number of batches by which a decision takes effect too late.
    - ``limit``: the most rows that the source hands over to a batch.
    - ``reports_lag``: whether a source with a limit says how many rows it holds back.
    - ``options``: options of the law.
    """
    rng = np.random.default_rng(seed)
    controller = MicroBatchController(Timeliness(target_s), make_law(law, **options))
    delays_s = np.full(len(arrivals_s), np.nan)
    pending = deque([0.0] * (lag + 1))
    batches, decisions = [], []
    now_s, first = 0.0, 0
    while first < len(arrivals_s):
        last = int(np.searchsorted(arrivals_s, now_s, side="right"))
        if last == first:
            now_s += trigger_s
            continue
        waiting = 0 if limit is None else max(last - first - limit, 0)
        last -= waiting
        kept = first + np.flatnonzero(rng.random(last - first) >= pending.popleft())
        work_s = float(cost_s(arrivals_s[kept]).sum()) if callable(cost_s) else cost_s * len(kept)
        duration_s = (fixed_s + work_s) * float(1.0 + noise * rng.standard_normal())
        delays_s[kept] = now_s + duration_s - arrivals_s[kept]
        mean_arrival_s = float(arrivals_s[kept].mean()) if len(kept) else None
        if controller.overdue(now_s + duration_s) and pending:
            pending[0] = controller.shed_ratio
        lag_rows = float(waiting) if limit is not None and reports_lag else None
        newest_s = float(arrivals_s[last - 1]) if limit is not None and not reports_lag else None
        batches.append(MicroBatch(now_s, duration_s, last - first, len(kept), mean_arrival_s, lag_rows, newest_s))
        decisions.append(controller.step(batches[-1]))
        pending.append(decisions[-1].shed_ratio)
        first = last
        now_s += max(trigger_s, duration_s)
    return MicroBatchRun(delays_s, batches, decisions)
