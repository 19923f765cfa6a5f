"""What deferrals that have ended teach: the loops that move each query's caution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral import calibration
from slackwater.control.deferral.methods import DeferralMethod
from slackwater.kernel.held import ENOUGH, Held
from slackwater.kernel.moment import Moment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_APART = 0.2
_STEPS = calibration.gain(np.arange(ENOUGH + 1.0))


class Loops:
    """One loop keeps the hit rate and one the share of time within the bound, as far as the method has them.

    They cost a few passes over the queries that are due, and a look back for the share of them that is audited.
    """

    def __init__(self, method: DeferralMethod, linear: bool, audit_ratio: float) -> None:
        self._method, self._linear, self._audit_ratio = method, linear, audit_ratio
        self.audits = np.zeros(3)  # ticks looked back on, those within the bound, those that the belief asks for

    def caution(self, held: Held) -> Floats:
        """The log of how much smaller a bound than the promised one the model is given."""
        return np.maximum(held.caution, held.lasting) if self._method.keeps_hit_rate else held.lasting

    def learn(
        self,
        held: Held,
        kept: Floats,
        by_model: NDArray[np.bool_] | None,
        moment: Moment,
        outside: Callable[[Ints], Floats],
    ) -> None:
        """Move each query's caution by what its last deferral showed.

        ``by_model``: where the model set the deferral, unless it did everywhere. ``outside``: whether some of the
        answers were outside their bounds at a random tick while they stood (1) or not (0).
        """
        method = self._method
        if not (method.keeps_hit_rate or method.keeps_fidelity):
            return
        ticks = (moment.tick - held.tick).astype(np.float64)
        told = ~np.isnan(kept)
        if by_model is not None:
            # Where φ1 set the deferral a kept answer says nothing of the model; a miss does.
            told &= by_model | (kept == 0.0)
        untold = np.flatnonzero(~told)
        # Nobody held a stale answer for a tick where the next one was evaluated at once.
        missed = (1.0 - kept) * (ticks > 1)
        missed[untold] = 0.0
        step = np.take(_STEPS, held.count)
        mean = held.mean_ticks
        unknown = np.flatnonzero(mean <= 0.0)
        mean[unknown] = np.maximum(ticks[unknown], 1.0)
        held.mean_ticks = mean + 0.1 * (ticks - mean)
        held.mean_ticks[untold] = mean[untold]
        if method.keeps_hit_rate or not self._linear:
            before = held.caution if method.keeps_hit_rate else held.lasting
            after = calibration.moved(before, missed, held.belief, step)
            after[untold] = before[untold]
            if method.keeps_hit_rate:
                held.caution = after
            else:
                held.lasting = after
        if method.keeps_fidelity and self._linear and self._audit_ratio > 0.0:
            drawn = moment.draw.random(len(kept), dtype=np.float32) < self._audit_ratio
            chosen = np.flatnonzero(told & drawn)
            if len(chosen):
                stood, belief = ticks[chosen], held.belief[chosen]
                wrong = outside(chosen)
                self.audits += stood.sum(), (stood * (1.0 - wrong)).sum(), (stood * belief).sum()
                # A share of time: a long deferral counts for more.
                weight = np.minimum(stood / mean[chosen], 4.0) * step[chosen]
                held.lasting[chosen] = calibration.moved(held.lasting[chosen], wrong, belief, weight)
        if method.keeps_hit_rate:
            # Neither loop winds down while the other one decides.
            held.caution = np.maximum(held.caution, held.lasting - _APART)
            held.lasting = np.maximum(held.lasting, held.caution - _APART)
        held.count += told & (held.count < ENOUGH)
