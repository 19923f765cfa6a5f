"""The standing-query evaluator: at every tick it evaluates the queries whose answers may no longer be good enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral import interruptions, model, scheduler, spending
from slackwater.control.deferral.estimation import StreamEstimator
from slackwater.control.deferral.methods import deferral_method
from slackwater.control.deferral.normality import NormalityWatch
from slackwater.control.deferral.windows import certain_time
from slackwater.kernel.standing.answer_table import AnswerRows, AnswerTable
from slackwater.kernel.standing.answers import Answers, concatenate_answers
from slackwater.kernel.standing.calibration_loops import CalibrationLoops
from slackwater.kernel.standing.extremes import Extremes, Guess
from slackwater.kernel.standing.history import History
from slackwater.kernel.standing.matrices import pattern, squared
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import with_prefix, without_prefix
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.stream_estimates import SIGNIFICANT, StreamEstimates
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEW, ANSWERED, GUESSED, WITHHELD = range(4)
"""A query's status: not evaluated yet; answered; answered with silent streams; without an answer."""

_STATUS_BITS = 2
_CHUNK_QUERIES = 1 << 17  # evaluated together, to bound memory
_CHUNK_CELLS = 1 << 20  # the same for windows: queries × ticks


class StandingEvaluator:
    """Keeps every answer within its bound with its confidence, and evaluates a query only when that requires it.

    A tick costs the rows that came, the due queries (their weights, and one scan of the window for MIN and MAX) and one
    pass over the next evaluation times. The state takes about 60 bytes per query and 40·k bytes per stream. If a stream
    can break a bound within one tick, the query is evaluated at every tick and its promise cannot be kept.
    """

    def __init__(self, queries: QuerySet, options: EvaluatorOptions | None = None, *, seed: int = 0) -> None:
        self.options = options or EvaluatorOptions()
        self.method = deferral_method(self.options.method)
        self.queries = queries
        self.stream_estimates = StreamEstimates(queries.streams, self.method, self.options)
        self.evaluations = 0
        self._linear = self.options.aggregate == "linear"
        self._sign = -1.0 if self.options.aggregate == "min" else 1.0
        self._loops = CalibrationLoops(self.method, self._linear)
        self._seed = seed
        size = queries.queries
        self.next_at = np.full(size, -np.inf)
        self.status = np.zeros(size, dtype=np.int8)
        # Windowed aggregates are not audited, so they earn nothing to spend.
        self._table = AnswerTable(queries, self.method.spends and self._linear)
        self._answered_at = np.zeros(size)
        self._answer_drift = np.zeros(size)
        self._extremes = None if self._linear else Extremes(queries, self.options)
        self._set_by_model = np.ones(size, dtype=np.bool_)

    @property
    def withheld(self) -> Ints:
        """Queries without an answer: one of their streams has never had a row, or they have no weights."""
        return np.flatnonzero(self.status == WITHHELD)

    @property
    def audits(self) -> Floats:
        """Audited ticks, those within the bound, and those that the confidence asks for."""
        return self._loops.audits

    @property
    def now(self) -> float:
        """The time of the newest tick."""
        return self.stream_estimates.now

    @property
    def silent(self) -> Bools:
        """Streams that were interrupted at the newest tick."""
        return self.stream_estimates.silent

    @property
    def estimator(self) -> StreamEstimator:
        """The drift and diffusion of every stream."""
        return self.stream_estimates.estimator

    @property
    def normality(self) -> NormalityWatch:
        """Tests whether the increments of each stream are normal."""
        return self.stream_estimates.normality

    @property
    def history(self) -> History:
        """The values of all streams at recent ticks."""
        return self.stream_estimates.history

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        if streams > self.queries.streams:
            self.queries = self.queries.over(streams)
            self.stream_estimates.grow(streams)
            if self._extremes is not None:
                self._extremes.grow(streams)

    def tick(self, now: float, streams: Ints, times: Floats, values: Floats) -> Answers:
        """Take in the rows that came and evaluate the queries that are due. Without rows, only the clock moves.

        ``now`` is in the time of the streams. A ``now`` before the newest tick counts as the newest tick. If this tick
        comes later than expected, queries whose deadline is over by now, and was not yet due at the tick before, are
        first evaluated as of that tick.
        """
        passed = self._evaluate_all(self._passed_over(now))
        self._absorb(now, streams, times, values)
        answers = concatenate_answers([passed, self._evaluate_all(self._within_capacity(self._due(), self.now))])
        self.evaluations += len(answers)
        return answers

    def _due(self) -> Ints:
        """Zhu 2004, footnote 1: a query is due at the last tick that is not after its deadline."""
        return np.flatnonzero(
            self.next_at < self._next_tick if self._next_tick > self.now else self.next_at <= self.now
        )

    @property
    def _next_tick(self) -> float:
        """When the next tick is expected."""
        return self.now + self.stream_estimates.period * (1.0 - 1e-9)

    def _passed_over(self, now: float) -> Ints:
        """Queries that were left to the tick at ``now``, which comes too late. None if there is a capacity."""
        if self.options.capacity is not None or not now > self._next_tick:
            return np.zeros(0, dtype=np.int64)
        late = np.flatnonzero((self.next_at < now) & (self.next_at >= self._next_tick))
        return late[self._table.ticks(late) < self.stream_estimates.tick]

    def _absorb(self, now: float, streams: Ints, times: Floats, values: Floats) -> None:
        before = self.now
        taken, appeared, returned = self.stream_estimates.absorb(now, streams, times, values)
        if self._extremes is not None:
            final = self.stream_estimates.final
            rows = streams[taken], times[taken], values[taken]
            self._extremes.absorb(self.queries, before, self.now, *rows, final)
        if appeared:
            self.next_at[self.status == WITHHELD] = -np.inf
        if returned:
            guessed = self.status == GUESSED
            self.next_at[guessed] = np.minimum(self.next_at[guessed], self.now)  # due now; a deadline may be over

    def _within_capacity(self, due: Ints, now: float) -> Ints:
        """All due queries, or under overload the first ``capacity`` of them in the chosen order."""
        if self.options.capacity is None or len(due) <= self.options.capacity:
            return due
        weights, period = self.queries.rows(due), self.stream_estimates.period
        loadings, specific = self.stream_estimates.covariance()
        known = np.where(np.isfinite(specific), specific, 0.0)
        diffusion = np.sqrt(weights.power(2) @ known + np.square(weights @ loadings).sum(axis=1))
        deadline = np.where(np.isfinite(self.next_at[due]), self.next_at[due], now - period)
        cost = np.full(len(due), max(period, 1e-9) / self.options.capacity)
        pending = scheduler.Pending(self._answered_at[due], deadline, cost, weights @ self.estimator.drift, diffusion)
        order = scheduler.order(self.options.order)(now, pending, max(period, 1e-9))
        return np.sort(due[order[: self.options.capacity]])

    def _evaluate_all(self, due: Ints) -> Answers:
        if len(due) == 0:
            return concatenate_answers([])
        size = _CHUNK_QUERIES if self._extremes is None else max(_CHUNK_CELLS // max(self._extremes.instants, 16), 1)
        tick = Tick.of(self.stream_estimates, self._max_deferral(), self._seed)
        return concatenate_answers([self._evaluate(due[at : at + size], tick) for at in range(0, len(due), size)])

    def _evaluate(self, due: Ints, tick: Tick) -> Answers:
        due, weights = self._answerable(due, tick)
        current, drift, variance = self._model_inputs(weights, tick)
        interrupted, interruption_error = self._interrupted(weights, due, tick)
        missed = (self.next_at[due] < tick.now) & np.isfinite(self.next_at[due])
        value, window = (current, None) if self._linear else self._extreme(weights, due, current, interrupted, tick.now)
        rows = self._table.take(due)
        promised = rows.epsilon()
        kept = self._kept(rows, due, value, promised, interrupted, tick.now)
        self._loops.learn(
            rows, kept, None if self._linear else self._set_by_model[due], tick,
            lambda chosen: self._outside_at_random_tick(rows, due, weights, chosen, promised, tick),
        )  # fmt: skip
        rows.value = value
        epsilon = rows.epsilon()
        if self._linear:
            wait = self._linear_deferral(rows, epsilon, drift, variance)
        else:
            wait = self._extreme_deferral(rows, due, epsilon, current, drift, variance, window, tick.now)
        next_at = tick.now + np.minimum(wait, tick.max_deferral)
        error_bound, status = epsilon, np.full(len(due), ANSWERED, dtype=np.int8)
        if tick.any_silent:
            guessed = interrupted > 0
            interval = self.options.while_interrupted or 5.0 * self.stream_estimates.period
            next_at = np.where(guessed, tick.now + interval, next_at)
            error_bound = np.where(guessed, interruption_error, epsilon)
            status[guessed] = GUESSED
        unknown = np.isnan(value)  # the landmark is still to come
        next_at[unknown], status[unknown] = -np.inf, NEW
        self._table.put(due, rows, tick.number)
        self.next_at[due], self.status[due] = next_at, status
        if self._keeps_answer_time:
            self._answered_at[due], self._answer_drift[due] = tick.now, drift
        at = np.full(len(due), tick.now)
        return Answers(due, at, value, drift, error_bound, interrupted, next_at, kept, missed)

    @property
    def _keeps_answer_time(self) -> bool:
        """Whether the time and drift of an answer are needed, not only its tick."""
        return self.options.value_and_drift or self.options.capacity is not None

    def _answerable(self, due: Ints, tick: Tick) -> tuple[Ints, sparse.csr_matrix]:
        """The due queries that can be answered, and their weights. The others are withheld."""
        weights = self.queries.rows(due)
        missing = np.diff(weights.indptr) == 0
        if tick.unseen is not None:
            missing |= (pattern(weights) @ tick.unseen.astype(np.float64)) > 0.0
        if not np.any(missing):
            return due, weights
        self.status[due[missing]] = WITHHELD
        self.next_at[due[missing]] = np.inf
        keep = np.flatnonzero(~missing)
        return due[keep], weights[keep]

    def _model_inputs(self, weights: sparse.csr_matrix, tick: Tick) -> tuple[Floats, Floats, Floats]:
        """The current value, drift and variance of each aggregate: Zhu 2004, Eq. (2), (6)."""
        current, drift = weights @ tick.values, weights @ tick.drift
        variance = squared(weights) @ tick.specific
        for loadings in tick.loadings:
            variance += np.square(weights @ loadings)
        if self.method.ignores_doubtful_drift:
            drift[np.square(drift) * tick.drift_span < SIGNIFICANT * variance] = 0.0
        return current, drift, variance

    def _interrupted(self, weights: sparse.csr_matrix, due: Ints, tick: Tick) -> tuple[Ints, Floats]:
        """The number of silent streams of each query, and ε_intr (empty if no stream is silent)."""
        if not tick.any_silent:
            return np.zeros(len(due), dtype=np.int64), np.zeros(0)
        count = (pattern(weights) @ self.silent.astype(np.float64)).astype(np.int64)
        spread = interruptions.unknown_spread(self.estimator, tick.now, self.silent)
        if self.options.sum_of_errors:
            error = abs(weights) @ spread
        else:
            scale = np.divide(spread, self.estimator.diffusion, out=np.zeros_like(spread), where=spread > 0.0)
            own = np.where(self.silent, tick.specific, 0.0) * np.square(scale)
            square = squared(weights) @ own
            for loadings in tick.loadings:
                square += np.square(weights @ (loadings * scale))
            error = np.sqrt(square)
        return count, self.queries.z[due] * error

    def _linear_deferral(self, rows: AnswerRows, epsilon: Floats, drift: Floats, variance: Floats) -> Floats:
        scale = np.exp(-self._loops.caution(rows))
        drift_of_error = np.zeros_like(drift) if self.options.value_and_drift else drift
        wait = model.deferral(epsilon * scale, drift_of_error, np.sqrt(variance), rows.confidence, rows.z)
        if rows.lengthening is None:
            return wait
        budget = spending.to_spend(rows.earned, rows.mean_ticks) * self.stream_estimates.period
        return rows.lengthening.lengthened(wait, budget)

    def _extreme_deferral(
        self,
        rows: AnswerRows,
        due: Ints,
        epsilon: Floats,
        current: Floats,
        drift: Floats,
        variance: Floats,
        window: tuple[Floats, Floats] | None,
        now: float,
    ) -> Floats:
        certain: Floats | float = np.inf
        if window is not None:
            times, block = window
            certain = certain_time(block, times, now, float(self.options.window or 0.0), epsilon)
        room = (self._sign * (rows.value - current) + epsilon) * np.exp(-self._loops.caution(rows))
        rise = model.rise_time(room, self._sign * drift, np.sqrt(variance), rows.confidence)
        rise = np.where(np.isnan(rise), 0.0, rise)
        self._set_by_model[due] = rise < certain
        return np.minimum(rise, certain)  # Zhu 2004, Eq. (11)

    def _extreme(
        self, weights: sparse.csr_matrix, due: Ints, current: Floats, interrupted: Ints, now: float
    ) -> tuple[Floats, tuple[Floats, Floats] | None]:
        """Each query's extreme, and for windows the aggregate at every instant in it, negated for a minimum."""
        assert self._extremes is not None
        if self.options.landmark is None:
            guess = None
            if np.any(interrupted):
                drift = np.where(self.silent, self.stream_estimates.trusted_drift(), 0.0)
                guess = Guess(drift, self.estimator.last_time)
            window = self._extremes.window(self.queries, weights, now, guess)
            return self._sign * np.fmax.reduce(window[1], axis=1), window  # Zhu 2004, Eq. (10)
        known = self._extremes.since_landmark(self.queries, weights, due)
        # A guess is part of the answer while the stream is silent, and forgotten when it returns.
        with_guess = self._sign * np.fmax(self._sign * known, self._sign * current)
        return np.where((interrupted > 0) & (now >= self.options.landmark), with_guess, known), None

    def _kept(
        self, rows: AnswerRows, due: Ints, value: Floats, promised: Floats, interrupted: Ints, now: float
    ) -> Floats:
        """Whether the previous answer is still within its bound (1 or 0; NaN if that cannot be known)."""
        answer = rows.value
        if self.options.value_and_drift and self._linear:
            answer = answer + self._answer_drift[due] * (now - self._answered_at[due])  # Zhu 2004, Eq. (8)
        kept = (np.abs(value - answer) <= promised).astype(np.float64)
        kept[(self.status[due] != ANSWERED) | (interrupted > 0)] = np.nan
        return kept

    def _outside_at_random_tick(
        self, rows: AnswerRows, due: Ints, weights: sparse.csr_matrix, chosen: Ints, promised: Floats, tick: Tick
    ) -> Floats:
        """For the rows ``chosen``: 1 if the answer was outside its bound at a random tick of its deferral, else 0."""
        given = rows.tick[chosen]
        at = given + np.floor(tick.random.random(len(given)) * (tick.number - given)).astype(np.int64)
        at = np.maximum(at - self.history.first_tick, 0)
        truth = self.history.aggregates(weights if len(chosen) == len(due) else weights[chosen], at)
        answer = rows.value[chosen]
        if self.options.value_and_drift:
            elapsed = self.history.times[at] - self._answered_at[due[chosen]]
            answer = answer + self._answer_drift[due[chosen]] * elapsed
        return np.asarray(np.abs(truth - answer) > promised[chosen], dtype=np.float64)

    def _max_deferral(self) -> float:
        """By default no deferral is longer than the time that the estimates look back on."""
        if self.options.max_deferral is not None:
            return self.options.max_deferral
        return self.stream_estimates.median_estimated_span()

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything that a restart needs except the queries, as arrays by name: about 32 bytes per query."""
        own: dict[str, NDArray[Any]] = {
            "next_at": self.next_at,
            "flags": (self.status | (self._set_by_model.astype(np.int8) << _STATUS_BITS)).astype(np.uint8),
            **self._table.snapshot(),
        }
        if self._keeps_answer_time:
            own |= {"answered_at": self._answered_at, "answer_drift": self._answer_drift}
        shared = {"evaluations": np.array([self.evaluations]), **self.stream_estimates.snapshot()}
        if self._extremes is not None:
            own |= self._extremes.query_snapshot()
            shared |= with_prefix("extremes.", self._extremes.snapshot())
        return {**with_prefix("query.", own), **shared}

    def resume(
        self,
        snapshot: dict[str, NDArray[Any]],
        previous: Ints | None = None,
        unchanged: Bools | None = None,
    ) -> None:
        """Continue from a snapshot of an evaluator with the same options.

        :param previous: each query's row in the snapshot, −1 for a new query; None if the queries are the same.
        :param unchanged: whether a query still has the same weights and promise; None means all of them. A changed
            query is evaluated at once. Its calibration continues.
        """
        self.evaluations = int(snapshot["evaluations"][0])
        own = without_prefix("query.", snapshot)
        self.stream_estimates.resume(snapshot)
        if self._extremes is not None:
            self._extremes.resume(without_prefix("extremes.", snapshot), self.now)
        if previous is None:
            self._resume_queries(own, slice(None))
        else:
            known = previous >= 0
            same = known if unchanged is None else known & unchanged
            self._resume_queries(_some(own, previous[same]), np.flatnonzero(same))
            self._table.resume_learned(_some(own, previous[known]), np.flatnonzero(known))
            if self._extremes is not None and self.queries.members != "all":
                # A new member changes nothing in the past.
                self._extremes.resume_queries(_some(own, previous[known]), np.flatnonzero(known))
        streams = max(self.queries.streams, self.estimator.streams)
        self.queries = self.queries.over(streams)
        self.stream_estimates.grow(streams)
        if self._extremes is not None:
            self._extremes.grow(streams)

    def _resume_queries(self, own: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        flags = own["flags"].astype(np.int8)
        self.next_at[into] = own["next_at"]
        self.status[into] = flags & ((1 << _STATUS_BITS) - 1)
        self._set_by_model[into] = flags >> _STATUS_BITS
        self._table.resume(own, into)
        if "answered_at" in own:
            self._answered_at[into], self._answer_drift[into] = own["answered_at"], own["answer_drift"]
        if self._extremes is not None:
            self._extremes.resume_queries(own, into)


def _some(arrays: dict[str, NDArray[Any]], rows: Ints) -> dict[str, NDArray[Any]]:
    return {name: array[rows] for name, array in arrays.items()}
