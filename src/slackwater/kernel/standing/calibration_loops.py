"""What deferrals that have ended teach: the loops that move each query's caution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral import calibration, spending
from slackwater.control.deferral.methods import DeferralMethod
from slackwater.kernel.standing.answer_table import ENOUGH, AnswerRows
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Chosen = Ints | slice

_APART = 0.2
_SLOWLY = 0.125  # the second loop moves by so much of a step an evaluation
_STEPS = calibration.gain(np.arange(ENOUGH + 1.0))


class CalibrationLoops:
    """One loop keeps the hit rate and one the share of time within the bound, as far as the method has them.

    They cost a few passes over the queries that are due, and a look back for the share of them that is audited.
    """

    def __init__(self, method: DeferralMethod, linear: bool) -> None:
        self._method, self._linear = method, linear
        self.audits = np.zeros(3)  # ticks looked back on, those within the bound, those that the confidence asks for

    def caution(self, held: AnswerRows) -> Floats:
        """The log of how much smaller a bound than the promised one the model is given."""
        return np.maximum(held.caution, held.lasting)

    def learn(
        self,
        held: AnswerRows,
        kept: Floats,
        by_model: NDArray[np.bool_] | None,
        moment: Tick,
        outside: Callable[[Chosen], Floats],
    ) -> None:
        """Move each query's caution by what its last deferral showed.

        ``by_model``: where the model set the deferral, unless it did everywhere. ``outside``: whether some of the
        answers were outside their bounds at a random tick while they stood (1) or not (0).
        """
        method = self._method
        if not method.closed_loop:
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
        before, ends = held.caution, held.confidence
        if held.lengthening is not None:
            could = spending.to_spend(held.earned, mean)  # as when the deferral was set
            ends = held.lengthening.end_confidence(held.confidence, np.maximum(ticks, 1.0), could)
        held.caution = calibration.moved(before, missed, ends, step)
        held.caution[untold] = before[untold]
        if self._linear:
            # At the tick at which it is given an answer is right: of a deferral by one tick there is nothing to see.
            drawn = told if method.audit_ratio == 1.0 else told & moment.drawn(len(kept), method.audit_ratio)
            self._audit(held, _where(drawn), _where(drawn & (ticks > 1.0)), ticks, mean, step, outside)
        # Neither loop winds down while the other one decides.
        held.caution = np.maximum(held.caution, held.lasting - _APART)
        held.lasting = np.maximum(held.lasting, held.caution - _APART)
        held.count += told & (held.count < ENOUGH)

    def _audit(
        self,
        held: AnswerRows,
        chosen: Chosen,
        looked: Chosen,
        ticks: Floats,
        mean: Floats,
        step: Floats,
        outside: Callable[[Chosen], Floats],
    ) -> None:
        """Look back on some deferrals, and learn what share of the time they were within the bound."""
        wrong = np.zeros(len(ticks))
        wrong[looked] = outside(looked)
        wrong, stood, confidence, ratio = (
            wrong[chosen],
            ticks[chosen],
            held.confidence[chosen],
            self._method.audit_ratio,
        )
        self.audits += stood.sum(), stood.sum() - stood @ wrong, stood @ confidence
        # A share of time: a long deferral counts for more. However many are audited, the loop is as quick.
        weight = np.minimum(stood / mean[chosen], 4.0) * step[chosen] * (_SLOWLY / ratio)
        held.lasting[chosen] = calibration.moved(held.lasting[chosen], wrong, confidence, weight)
        if held.lengthening is not None:
            held.earned[chosen] = spending.after(held.earned[chosen], stood, wrong, confidence, mean[chosen], ratio)


def _where(mask: NDArray[np.bool_]) -> Chosen:
    """The places where it is set; all of them as a slice, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)
