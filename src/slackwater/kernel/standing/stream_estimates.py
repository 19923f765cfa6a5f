"""What is believed of all streams: their values at the last ticks, how each moves, and which are silent."""

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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIGNIFICANT = 4.0  # (two standard errors)²
_NORMALITY_EVERY = 16


class StreamEstimates:
    """Takes in rows tick by tick; knows every stream's newest value, or the best guess while it is silent.

    A tick costs the rows that came and the estimates that are due. State is some 40·k bytes a
    stream, of which 24·k are put away.
    """

    def __init__(self, streams: int, method: DeferralMethod, options: EvaluatorOptions) -> None:
        self._method, self._options = method, options
        self.estimator = StreamEstimator(streams, options.k, options.t_max)
        self.normality = NormalityWatch(streams)
        self.history = History(streams, options.k + 1, options.window or 0.0)
        self.correlation = independent(streams)
        self.silent = np.zeros(streams, dtype=np.bool_)
        self.now = -np.inf
        self.period = 0.0
        self._gaps: deque[float] = deque(maxlen=15)
        self._correlate_at = MIN_ITEMS
        self._spans: tuple[float, float] | None = None  # of all streams and of those estimated, until that changes

    @property
    def values(self) -> Floats:
        """Every stream's value at the last tick; zero where nothing was ever seen."""
        newest: Floats = self.history.values[-1]
        return newest

    @property
    def tick(self) -> int:
        """The number of the last tick."""
        return self.history.ticks - 1

    def covariance(self) -> tuple[Floats, Floats]:
        """Loadings on common factors, and the variance that is left to each stream alone."""
        return self.correlation.covariance(self.estimator.diffusion)

    def looked_back_on(self) -> float:
        """The time that the estimates of a usual stream rest on, of those that have been estimated."""
        return self._usual_spans()[1]

    def usual_span(self) -> float:
        """The same of all streams, those not estimated yet with no time at all."""
        return self._usual_spans()[0]

    def _usual_spans(self) -> tuple[float, float]:
        if self._spans is None:
            spans = np.sort(self.estimator.span)
            self._spans = _middle(spans), _middle(spans[np.searchsorted(spans, 0.0, side="right") :])
        return self._spans

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        self.estimator.grow(streams)
        self.normality.grow(streams)
        self.history.grow(streams)
        self._spans = None
        more = max(streams - len(self.silent), 0)
        self.silent = np.concatenate([self.silent, np.zeros(more, dtype=np.bool_)])

    def absorb(self, now: float, streams: Ints, times: Floats, values: Floats) -> tuple[bool, bool]:
        """Take in the rows of a tick; whether a stream appeared for the first time, and whether a silent one returned.

        A tick before the last one counts as at it.
        """
        now = max(now, self.now)
        if now > self.now and np.isfinite(self.now):
            self._gaps.append(now - self.now)
            self.period = median(self._gaps)
        self.now = now
        seen_before = np.count_nonzero(self.estimator.items)
        self.estimator.observe(streams, times, values)
        appeared = np.count_nonzero(self.estimator.items) != seen_before
        silent = interruptions.interrupted(self.estimator, now, self._options.patience)
        returned = bool(np.any(self.silent & ~silent))
        self.silent = silent
        if len(self.estimator.estimate(now, self.period, silent)):
            self._spans = None
        if self.history.ticks % _NORMALITY_EVERY == 0:
            self.normality.step(self.estimator)
        guesses = interruptions.best_guess(self.estimator, now, silent, self._trusted_drift())
        self.history.append(now, guesses if np.all(self.estimator.seen) else np.nan_to_num(guesses))
        self._correlate()
        return appeared, returned

    def _trusted_drift(self) -> Floats:
        drift = self.estimator.drift
        if not self._method.doubtful_drift or not np.any(self.silent):
            return drift
        # differs: extrapolating a drift that is mere noise makes the guess worse than none.
        doubtful = np.square(drift) * self.estimator.span < SIGNIFICANT * np.square(self.estimator.diffusion)
        return np.where(doubtful, 0.0, drift)

    def _correlate(self) -> None:
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
        """Everything needed to go on, as arrays by name."""
        own = {
            "clock": np.array([self.now, self.period, *self._gaps]),
            "correlate_at": np.array([self._correlate_at]),
            "silent": self.silent,
            "loadings": self.correlation.loadings,
            "specific": self.correlation.specific,
        }
        streams = {f"streams.{name}": array for name, array in self.estimator.snapshot().items()}
        history = {f"history.{name}": array for name, array in self.history.snapshot().items()}
        normality = {f"normality.{name}": array for name, array in self.normality.snapshot().items()}
        return {**own, **streams, **history, **normality}

    def resume(self, snapshot: dict[str, NDArray[Any]]) -> None:
        """Go on from a snapshot."""
        self.now, self.period = float(snapshot["clock"][0]), float(snapshot["clock"][1])
        self._gaps = deque(snapshot["clock"][2:].tolist(), maxlen=15)
        self._correlate_at = int(snapshot["correlate_at"][0])
        self.silent = np.array(snapshot["silent"])
        self.correlation = type(self.correlation)(snapshot["loadings"], snapshot["specific"])
        self.estimator.resume(below(snapshot, "streams."))
        self._spans = None
        self.history.resume(below(snapshot, "history."))
        self.normality.resume(below(snapshot, "normality."))


def _middle(ordered: Floats) -> float:
    """The median of numbers in order; zero where there are none."""
    size = len(ordered)
    return (float(ordered[(size - 1) // 2]) + float(ordered[size // 2])) / 2.0 if size else 0.0


def below(snapshot: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in snapshot.items() if name.startswith(prefix)}
