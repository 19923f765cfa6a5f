"""The closed loops: each finished deferral moves the caution of its query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral import calibration, spending
from slackwater.control.deferral.methods import DeferralMethod
from slackwater.kernel.standing.answer_table import MAX_COUNT, AnswerRows
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MAX_LEAD = 0.2  # how far one loop may be ahead of the other
_FIDELITY_STEP = 0.125  # the fidelity loop's step, as a fraction of the hit loop's
_MAX_WEIGHT = 4.0  # a deferral counts for at most this many average ones
WAITING_AUDIT_RATIO = 1.0 / 64.0
"""The share of overdue answers that is looked at in each tick."""

_STEPS = calibration.gain(np.arange(MAX_COUNT + 1.0))


class CalibrationLoops:
    """Two loops per query: one for the hit rate, one for fidelity (the share of time within the bound).

    Only a method with ``closed_loop`` uses them. The loops cost a few passes over the due queries, plus one look into
    the past for the ``audit_ratio`` of them. Windowed aggregates have only the hit loop: their past is not kept.
    """

    def __init__(self, method: DeferralMethod, linear: bool) -> None:
        self._method, self._linear = method, linear
        # audited ticks, those within the bound, those that the confidence asks for, audits
        self.audits = np.zeros(4)

    def caution(self, rows: AnswerRows) -> Floats:
        """Minus the logarithm of the factor by which the model's bound is reduced. The more cautious loop decides."""
        return np.maximum(rows.hit_caution, rows.fidelity_caution)

    def learn(
        self,
        rows: AnswerRows,
        kept: Floats,
        waited: Floats,
        by_model: NDArray[np.bool_] | None,
        tick: Tick,
        outside: Callable[[Ints, Floats], Floats],
    ) -> None:
        """Update ``rows`` from the deferrals that end at ``tick``.

        :param kept: whether the answer was within its bound when the deferral ended; NaN if unknown.
        :param waited: for how many ticks each was overdue for want of time. Such a deferral teaches nothing: caution
            would only add to the load. It is audited up to its deadline; ``audit_waiting`` covers the rest.
        :param by_model: which deferrals the model set; None means all of them.
        :param outside: audits some of the rows at one random tick of their deferral; takes the rows and the lengths of
            their deferrals in ticks, and returns 1 where the answer was outside its bound then.
        """
        method = self._method
        if not method.closed_loop:
            return
        ticks = (tick.number - rows.tick).astype(np.float64)
        judged = ~np.isnan(kept)
        learns = judged & (waited == 0.0)
        if by_model is not None:
            # Where φ1 set the deferral, a hit says nothing about the model. A miss does.
            learns &= by_model | (kept == 0.0)
        step = np.take(_STEPS, rows.count)
        mean_ticks = np.where(rows.mean_ticks > 0.0, rows.mean_ticks, np.maximum(ticks, 1.0))
        rows.mean_ticks = np.where(learns, mean_ticks + 0.1 * (ticks - mean_ticks), mean_ticks)
        self._move_hit_loop(rows, kept, learns, ticks, mean_ticks, step)
        if self._linear:
            audited = judged
            if method.audit_ratio < 1.0:
                audited = judged & tick.sampled(len(kept), method.audit_ratio)
            self._move_fidelity_loop(rows, audited, learns, np.maximum(ticks - waited, 1.0), mean_ticks, step, outside)
        # A loop must not wind down while the other one decides.
        rows.hit_caution = np.maximum(rows.hit_caution, rows.fidelity_caution - _MAX_LEAD)
        rows.fidelity_caution = np.maximum(rows.fidelity_caution, rows.hit_caution - _MAX_LEAD)
        rows.count += learns & (rows.count < MAX_COUNT)

    def audit_waiting(self, looked_at: Floats) -> bool:
        """Add overdue answers to the audits: how many, those within the bound, those that the confidence asks for.

        Each stands for one tick. Returns False for a method without audits.
        """
        if not (self._linear and self._method.audit_ratio):
            return False
        self.audits[:3] += looked_at * (self._method.audit_ratio / WAITING_AUDIT_RATIO)
        self.audits[3] += looked_at[0]
        return True

    def _move_hit_loop(
        self, rows: AnswerRows, kept: Floats, learns: NDArray[np.bool_], ticks: Floats, mean_ticks: Floats, step: Floats
    ) -> None:
        # After a deferral of one tick no reader has seen a stale answer, so it is not a miss.
        missed = np.where(learns, (1.0 - kept) * (ticks > 1.0), 0.0)
        target = rows.confidence
        if rows.lengthening is not None:
            budget = spending.to_spend(rows.earned, mean_ticks)  # the same budget as when the deferral was set
            target = rows.lengthening.end_confidence(rows.confidence, np.maximum(ticks, 1.0), budget)
        moved = calibration.moved(rows.hit_caution, missed, target, step)
        rows.hit_caution = np.where(learns, moved, rows.hit_caution)

    def _move_fidelity_loop(
        self,
        rows: AnswerRows,
        audited: NDArray[np.bool_],
        learns: NDArray[np.bool_],
        ticks: Floats,
        mean_ticks: Floats,
        step: Floats,
        outside: Callable[[Ints, Floats], Floats],
    ) -> None:
        # An answer is exact at its own tick, so a deferral of one tick has no wrong tick to find.
        look = np.flatnonzero(audited & (ticks > 1.0))
        wrong = np.zeros(len(ticks))
        wrong[look] = outside(look, ticks[look])
        seen = ticks[audited]
        within, asked = seen.sum() - seen @ wrong[audited], seen @ rows.confidence[audited]
        self.audits += np.array([seen.sum(), within, asked, len(seen)])
        chosen = np.flatnonzero(audited & learns)
        wrong, ticks, mean_ticks = wrong[chosen], ticks[chosen], mean_ticks[chosen]
        confidence, ratio = rows.confidence[chosen], self._method.audit_ratio
        # Fidelity is a share of time: a long deferral weighs more. The fewer are audited, the larger the step.
        weight = np.minimum(ticks / mean_ticks, _MAX_WEIGHT) * step[chosen] * (_FIDELITY_STEP / ratio)
        rows.fidelity_caution[chosen] = calibration.moved(rows.fidelity_caution[chosen], wrong, confidence, weight)
        if rows.lengthening is not None:
            rows.earned[chosen] = spending.after(rows.earned[chosen], ticks, wrong, confidence, mean_ticks, ratio)
