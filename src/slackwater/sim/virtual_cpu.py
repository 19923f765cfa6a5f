"""A processor of fixed speed that evaluates standing queries: what is missed, and what that costs, under overload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.scheduler import Pending, order, penalty

Floats = NDArray[np.float64]

AVERAGE_S, MAXIMUM_S, NEXT_TIME_S = 0.1e-3, 0.53e-3, 0.37e-3  # Zhu 2004, §6.2: the paper's measured costs


@dataclass(frozen=True, slots=True)
class Load:
    """Evaluations that fell due, those not done by their deadline, and the penalty of Eq. (18) for the late ones."""

    evaluations: int
    missed: int
    penalty: float

    @property
    def missed_ratio(self) -> float:
        """The share of evaluations that were not in time."""
        return self.missed / self.evaluations if self.evaluations else 0.0


def run_processor(
    interval: Floats,
    cost: Floats,
    drift: Floats,
    diffusion: Floats,
    *,
    by: str,
    horizon: float,
    tick: float = 1.0,
    quantum: float = 0.05,
    seed: int = 0,
) -> Load:
    """Queries that must be evaluated every ``interval`` seconds at ``cost`` seconds each, in the order ``by``.

    An evaluation is released when the last one was due and has a whole interval (Zhu 2004, Fig. 4); it may be
    preempted at every quantum. A query whose evaluation is late misses it, and one more for every interval that passes
    meanwhile; its next one is released when the late one ends. What has not ended at the horizon, and is past its
    deadline, counts with the penalty of ending there.
    """
    arrange = order(by)
    released = np.random.default_rng(seed).random(len(interval)) * interval
    deadline, left = released + interval, cost.copy()
    evaluations = missed = 0
    total = 0.0
    for step in range(round(horizon / quantum)):
        now = step * quantum
        ready = np.flatnonzero(released <= now)
        if len(ready) == 0:
            continue
        pending = Pending(released[ready], deadline[ready], left[ready], drift[ready], diffusion[ready])
        chosen = ready[arrange(now, pending, tick)]
        ends = now + np.cumsum(left[chosen])
        done = ends <= now + quantum
        over, ended = chosen[done], ends[done]
        late = ended - deadline[over]
        skipped = _skipped(late, interval[over])
        evaluations += int(np.sum(np.maximum(skipped, 1)))
        missed += int(skipped.sum())
        total += float(penalty(late, drift[over], diffusion[over]).sum())
        if len(over) < len(chosen):
            begun = chosen[len(over)]
            left[begun] -= now + quantum - (ended[-1] if len(ended) else now)
        released[over] = np.maximum(deadline[over], ended)
        deadline[over] = released[over] + interval[over]
        left[over] = cost[over]
    late = horizon - deadline
    total += float(penalty(late, drift, diffusion).sum())
    never = int(_skipped(late, interval).sum())
    return Load(evaluations + never, missed + never, total)


def _skipped(late: Floats, interval: Floats) -> NDArray[np.int64]:
    """How many evaluations fell due until a late one ended: itself, and one more for every further interval."""
    return np.ceil(np.maximum(late, 0.0) / interval).astype(np.int64)


def mixed_costs(queries: int, *, deferring: bool) -> Floats:
    """Half averages, half maxima over a window; a scheme that defers also solves for the next time."""
    cost = np.where(np.arange(queries) % 2 == 0, AVERAGE_S, MAXIMUM_S)
    return cost + (NEXT_TIME_S if deferring else 0.0)
