"""When each standing query is due, and which of the due queries are evaluated when there is no time for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral import scheduler
from slackwater.kernel.standing.evaluation_cost import EvaluationCost
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.rounding import rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BEFORE_NEXT_TICK = 1.0 - 1e-9
_SHORTEST = 1e-9


class Schedule:
    """Deadlines of all queries, the choice under overload, and what missed deadlines cost.

    ``next_at`` is the deadline of each answer: −∞ for a query that must be evaluated at once, ∞ for one that waits for
    its streams. A tick costs one pass over ``next_at``; under overload it also sorts the due queries. The state takes
    16 bytes per query.

    Four numbers describe the newest tick. ``missed`` is the number of deadlines that passed since the tick before
    without an evaluation, so each is counted once. ``penalty`` is what overdue answers added to their expected extra
    error since then (Zhu 2004, Eq. 18); it grows until the late evaluation. ``postponed`` is the number of due queries
    that were left to a later tick, ``overdue`` the number of those whose deadline is over.
    """

    def __init__(self, work: Floats, options: EvaluatorOptions, cost: EvaluationCost) -> None:
        size = len(work)
        self.next_at = np.full(size, -np.inf)
        self.cost = cost
        self._options, self._work = options, work
        self._order = scheduler.order(options.order or scheduler.DEFAULT_ORDER)
        self._drift = np.zeros(size, dtype=np.float32)
        self._diffusion = np.full(size, np.inf, dtype=np.float32)  # infinite: a query without an answer comes first
        self.missed = self.postponed = self.overdue = 0
        self.penalty = 0.0

    def due(self, now: float, period: float) -> Ints:
        """Zhu 2004, footnote 1: a query is due at the last tick that is not after its deadline."""
        next_tick = self.next_tick(now, period)
        return np.flatnonzero(self.next_at < next_tick if next_tick > now else self.next_at <= now)

    @staticmethod
    def next_tick(now: float, period: float) -> float:
        """When the next tick is expected."""
        return now + period * _BEFORE_NEXT_TICK

    def passed_over(self, before: float, now: float, period: float, budget_ms: float) -> Ints:
        """Queries that were left to the tick at ``now``, which comes too late. None if there is no time for them.

        Their deadline is over by now and was not yet due at the tick ``before``.
        """
        next_tick = self.next_tick(before, period)
        if not now > next_tick:
            return np.zeros(0, dtype=np.int64)
        late = np.flatnonzero((self.next_at < now) & (self.next_at >= next_tick))
        every = np.concatenate([late, self.due(now, period)])
        return late if self._fits(every, budget_ms) else late[:0]

    def select(self, due: Ints, answered: Ints, now: float, period: float, budget_ms: float) -> Ints:
        """The due queries to evaluate now: all of them, or under overload the first ones in the chosen order.

        :param answered: the tick at which each of them was answered last.
        :param budget_ms: the processor time for evaluations.
        """
        if self._fits(due, budget_ms):
            return due
        limit, work = self._limit(budget_ms), self._units(due)
        tick = max(period, _SHORTEST)
        # The whole limit takes one tick, so a unit of work takes this part of it.
        elapsed = work * (tick / limit)
        pending = scheduler.Pending(
            released=answered.astype(np.float64),
            deadline=self.next_at[due],
            cost=elapsed,
            drift=self._drift[due].astype(np.float64),
            diffusion=self._diffusion[due].astype(np.float64),
        )
        order = self._order(now, pending, tick)
        count = max(int(np.searchsorted(np.cumsum(work[order]), limit * (1.0 + 1e-9), side="right")), 1)
        return np.sort(due[order[:count]])

    def _fits(self, some: Ints, budget_ms: float) -> bool:
        limit = self._limit(budget_ms)
        return bool(np.isinf(limit) or self._units(some).sum() <= limit)

    def _limit(self, budget_ms: float) -> float:
        """The work that fits into a tick: the given capacity, or what the measured cost allows."""
        if self._options.capacity is not None:
            return float(self._options.capacity)
        return self.cost.affordable(budget_ms)

    def _units(self, some: Ints) -> Floats:
        return np.ones(len(some)) if self._options.capacity is not None else self._work[some]

    def work(self, some: Ints) -> float:
        """The work of evaluating some queries, in units of ``EvaluationCost``."""
        return float(self._work[some].sum())

    def account(self, due: Ints, before: float, now: float) -> None:
        """Count the deadlines that passed after the tick ``before``, and what all that are over cost until ``now``."""
        over = self._over(due, now)
        deadline = self.next_at[over]
        self.missed = int(np.count_nonzero(deadline >= before))
        known = over[np.isfinite(self._diffusion[over])]
        deadline = self.next_at[known]
        drift, diffusion = self._drift[known].astype(np.float64), self._diffusion[known].astype(np.float64)
        until = scheduler.penalty(now - deadline, drift, diffusion)
        since = scheduler.penalty(before - deadline, drift, diffusion)
        self.penalty = float(until.sum() - since.sum())

    def postpone(self, due: Ints, chosen: Ints, now: float) -> Ints:
        """Count the due queries that are not evaluated now, and return those whose deadline is over."""
        self.postponed = len(due) - len(chosen)
        left = np.setdiff1d(due, chosen, assume_unique=True) if self.postponed else due[:0]
        overdue = self._over(left, now)
        self.overdue = len(overdue)
        return overdue

    def _over(self, due: Ints, now: float) -> Ints:
        deadline = self.next_at[due]
        over: Ints = due[(deadline < now) & np.isfinite(deadline)]
        return over

    def set_deadlines(self, some: Ints, next_at: Floats, drift: Floats, variance: Floats) -> None:
        """The deadlines of new answers, and how the errors of these answers grow."""
        self.next_at[some] = next_at
        self._drift[some] = rounded(drift)
        self._diffusion[some] = rounded(np.sqrt(variance))

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The state of each query, as arrays by name."""
        return {"next_at": self.next_at, "error_drift": self._drift, "error_diffusion": self._diffusion}

    def resume(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Restore the state of some queries."""
        self.next_at[into] = snapshot["next_at"]
        self._drift[into], self._diffusion[into] = snapshot["error_drift"], snapshot["error_diffusion"]
