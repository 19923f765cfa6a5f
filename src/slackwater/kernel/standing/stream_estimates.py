"""The state of all streams: recent values, how each stream moves, and which ones are silent."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral import interruptions
from slackwater.control.deferral.covariance import common_factors, independent
from slackwater.control.deferral.estimation import MIN_ITEMS, StreamEstimator
from slackwater.control.deferral.methods import DeferralMethod
from slackwater.control.deferral.normality import NormalityWatch
from slackwater.kernel.standing.history import History
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import with_prefix, without_prefix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIGNIFICANT = 4.0  # (two standard errors)²
_TICKS_PER_NORMALITY_TEST = 16
_GAPS = 15  # the tick period is the median of this many gaps


class StreamEstimates:
    """Takes in rows tick by tick and keeps each stream's newest value, or its best guess while the stream is silent.

    ``values`` are these values; zero for a stream that never had a row. The history has the last known values, without
    guesses. ``period`` is the usual time between two ticks.

    A tick costs the rows that came plus the estimates that are due. The state takes about 40·k bytes per stream; 24·k
    of them are in the snapshot.
    """

    def __init__(self, streams: int, method: DeferralMethod, options: EvaluatorOptions) -> None:
        self._method, self._options = method, options
        self.estimator = StreamEstimator(streams, options.k, options.t_max)
        self.normality = NormalityWatch(streams)
        self.history = History(streams, options.k + 1)
        self.correlation = independent(streams)
        self.silent = np.zeros(streams, dtype=np.bool_)
        self.values = np.zeros(streams)
        self.now = -np.inf
        self.period = 0.0
        self._gaps: deque[float] = deque(maxlen=_GAPS)
        self.tested: list[int] = []  # streams whose increments were tested for normality at the newest tick
        self._correlate_at = MIN_ITEMS
        self._spans: tuple[float, float] | None = None  # cached until an estimate changes

    @property
    def final(self) -> float:
        """The newest time at which no row of a stream that is not silent can change a value any more."""
        active = self.estimator.seen & ~self.silent
        return float(self.estimator.last_time[active].min()) if np.any(active) else -np.inf

    @property
    def tick(self) -> int:
        """The number of the newest tick."""
        return self.history.ticks - 1

    def covariance(self) -> tuple[Floats, Floats]:
        """Loadings on common factors, and each stream's own variance."""
        return self.correlation.covariance(self.estimator.diffusion)

    def median_span(self) -> float:
        """The median time that a stream's estimates rest on. A stream without an estimate counts as zero."""
        return self._median_spans()[0]

    def median_estimated_span(self) -> float:
        """The same median over the streams that have an estimate."""
        return self._median_spans()[1]

    def _median_spans(self) -> tuple[float, float]:
        if self._spans is None:
            spans = np.sort(self.estimator.span)
            self._spans = _sorted_median(spans), _sorted_median(spans[np.searchsorted(spans, 0.0, side="right") :])
        return self._spans

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        self.estimator.grow(streams)
        self.normality.grow(streams)
        self.history.grow(streams)
        self._spans = None
        more = max(streams - len(self.silent), 0)
        self.silent = np.concatenate([self.silent, np.zeros(more, dtype=np.bool_)])
        self.values = np.concatenate([self.values, np.zeros(more)])

    def absorb(self, now: float, streams: Ints, times: Floats, values: Floats) -> tuple[Ints, bool, bool]:
        """Take in the rows of one tick. A ``now`` before the newest tick counts as the newest tick.

        :return: the positions of the rows taken, whether a stream had its first row, and whether a silent stream
            returned.
        """
        now = max(now, self.now)
        if now > self.now and np.isfinite(self.now):
            self._gaps.append(now - self.now)
            self.period = median(self._gaps)
        self.now = now
        seen_before = np.count_nonzero(self.estimator.items)
        taken = self.estimator.observe(streams, times, values)
        appeared = np.count_nonzero(self.estimator.items) != seen_before
        silent = interruptions.interrupted(self.estimator, now, self._options.patience)
        returned = bool(np.any(self.silent & ~silent))
        self.silent = silent
        if len(self.estimator.estimate(now, self.period, silent)):
            self._spans = None
        due = self.history.ticks % _TICKS_PER_NORMALITY_TEST == 0
        self.tested = self.normality.step(self.estimator) if due else []
        self.history.append(now, np.nan_to_num(self.estimator.last_value))
        self._guess()
        self._update_correlation()
        return taken, appeared, returned

    def _guess(self) -> None:
        guesses = interruptions.best_guess(self.estimator, self.now, self.silent, self.trusted_drift())
        self.values = np.nan_to_num(guesses)

    def trusted_drift(self) -> Floats:
        """The drift that silent streams are believed to follow."""
        drift = self.estimator.drift
        if not self._method.ignores_doubtful_drift or not np.any(self.silent):
            return drift
        # differs: a drift that is mere noise makes the guess worse, so it is left out.
        doubtful = np.square(drift) * self.estimator.span < SIGNIFICANT * np.square(self.estimator.diffusion)
        return np.where(doubtful, 0.0, drift)

    def _update_correlation(self) -> None:
        if not self._method.correlated or self.history.ticks < self._correlate_at:
            return
        k = self._options.k
        self._correlate_at = self.history.ticks + k // 4
        values, times = self.history.values[-k:], self.history.times[-k:]
        gaps = np.diff(times)
        steps = np.diff(values, axis=0)[gaps > 0.0] / np.sqrt(gaps[gaps > 0.0])[:, None]
        if len(steps) >= MIN_ITEMS - 1:
            self.correlation = common_factors(steps)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The whole state as arrays by name."""
        return {
            "clock": np.array([self.now, self.period, *self._gaps]),
            "correlate_at": np.array([self._correlate_at]),
            "silent": self.silent,
            "loadings": self.correlation.loadings,
            "specific": self.correlation.specific,
            **with_prefix("streams.", self.estimator.snapshot()),
            **with_prefix("history.", self.history.snapshot()),
            **with_prefix("normality.", self.normality.snapshot()),
        }

    def resume(self, snapshot: dict[str, NDArray[Any]]) -> None:
        """Continue from a snapshot."""
        now, period, *gaps = snapshot["clock"].tolist()
        self.now, self.period, self._gaps = now, period, deque(gaps, maxlen=_GAPS)
        self._correlate_at = int(snapshot["correlate_at"][0])
        self.silent = np.array(snapshot["silent"])
        self.correlation = type(self.correlation)(snapshot["loadings"], snapshot["specific"])
        self.estimator.resume(without_prefix("streams.", snapshot))
        self._spans = None
        self.history.resume(without_prefix("history.", snapshot))
        self.normality.resume(without_prefix("normality.", snapshot))
        self._guess()


def _sorted_median(ordered: Floats) -> float:
    """The median of sorted numbers. Zero if there are none."""
    size = len(ordered)
    return (float(ordered[(size - 1) // 2]) + float(ordered[size // 2])) / 2.0 if size else 0.0
