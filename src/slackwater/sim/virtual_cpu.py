"""A simulated processor of fixed speed: which evaluations it misses under overload, and the penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.scheduler import Pending, order, penalty

Floats = NDArray[np.float64]

AVERAGE_S, MAXIMUM_S, NEXT_TIME_S = 0.1e-3, 0.53e-3, 0.37e-3  # Zhu 2004, §6.2: the paper's measured costs


@dataclass(frozen=True, slots=True)
class Load:
    """Evaluations that fell due, those that missed their deadline, and their total penalty (Zhu 2004, Eq. 18)."""

    evaluations: int
    missed: int
    penalty: float

    @property
    def missed_ratio(self) -> float:
        """The share of evaluations that missed their deadline."""
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
    """Run queries that need an evaluation every ``interval`` seconds at ``cost`` seconds each.

    An evaluation is released when the previous one was due, and has one interval to finish (Zhu 2004, Fig. 4). It may
    be preempted at every quantum. A late evaluation counts as missed, plus one for every further interval until it
    ends; the next one is released then. An evaluation that is still late at the horizon counts as if it ended there.

    :param by: the name of an order in ``control.deferral.scheduler``.
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
    """The evaluations missed by the time a late one ends: itself, plus one for every further interval."""
    return np.ceil(np.maximum(late, 0.0) / interval).astype(np.int64)


def mixed_costs(queries: int, *, deferring: bool) -> Floats:
    """Costs of a mix: half averages, half windowed maxima. Deferring adds the cost of solving for the next time."""
    cost = np.where(np.arange(queries) % 2 == 0, AVERAGE_S, MAXIMUM_S)
    return cost + (NEXT_TIME_S if deferring else 0.0)
