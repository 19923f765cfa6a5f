"""The standing-query evaluator: at every tick it evaluates the queries whose answers may no longer be good enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral import model, spending
from slackwater.control.deferral.estimation import StreamEstimator
from slackwater.control.deferral.methods import deferral_method
from slackwater.control.deferral.normality import NormalityWatch
from slackwater.kernel.standing.answer_table import AnswerRows, AnswerTable
from slackwater.kernel.standing.answers import Answers, concatenate_answers
from slackwater.kernel.standing.calibration_loops import WAITING_AUDIT_RATIO, CalibrationLoops
from slackwater.kernel.standing.evaluation_cost import EvaluationCost, work_of
from slackwater.kernel.standing.extremes import Extremes
from slackwater.kernel.standing.history import History
from slackwater.kernel.standing.interruption_error import interruption_error
from slackwater.kernel.standing.matrices import pattern, squared
from slackwater.kernel.standing.moving_answers import MovingAnswers
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import with_prefix, without_prefix
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.schedule import Schedule
from slackwater.kernel.standing.stream_estimates import SIGNIFICANT, StreamEstimates
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEW, ANSWERED, GUESSED, WITHHELD = range(4)
"""A query's status: not evaluated yet; answered; answered with silent streams; without an answer."""

_WAITING_SEED = 1 << 32
_STATUS_BITS = 2
_CHUNK_QUERIES = 1 << 17  # evaluated together, to bound memory
_CHUNK_CELLS = 1 << 20  # the same for windows: queries × ticks


class StandingEvaluator:
    """Keeps every answer within its bound with its confidence, and evaluates a query only when that requires it.

    A tick costs the rows that came, the due queries (their weights, and one scan of the window for MIN and MAX) and one
    pass over the next evaluation times. The state takes about 60 bytes per query and 40·k bytes per stream. If a stream
    can break a bound within one tick, the query is evaluated at every tick and its promise cannot be kept.

    :param cost: measures the processor time of evaluations, for ticks with a budget.
    """

    def __init__(
        self,
        queries: QuerySet,
        options: EvaluatorOptions | None = None,
        *,
        seed: int = 0,
        cost: EvaluationCost | None = None,
    ) -> None:
        self.options = options or EvaluatorOptions()
        self.cost = cost or EvaluationCost()
        self.options.check_order(limited=self.cost.measured)
        self.method = deferral_method(self.options.method)
        self.queries = queries
        self.stream_estimates = StreamEstimates(queries.streams, self.method, self.options)
        self.evaluations = 0
        self._linear = self.options.aggregate == "linear"
        self._loops = CalibrationLoops(self.method, self._linear)
        self._seed = seed
        size = queries.queries
        self.schedule = Schedule(work_of(queries.weights), self.options, self.cost)
        self.status = np.zeros(size, dtype=np.int8)
        # Windowed aggregates are not audited, so they earn nothing to spend.
        self._table = AnswerTable(queries, self.method.spends and self._linear)
        self._moving = MovingAnswers(size, self.options.value_and_drift)
        self._extremes = None if self._linear else Extremes(queries, self.options)
        self.waiting_judged = np.zeros(3)  # overdue answers looked at now, those within the bound, those asked for
        self._set_by_model = np.ones(size, dtype=np.bool_)

    @property
    def next_at(self) -> Floats:
        """The deadline of each answer: −∞ for a query that is due at once, ∞ for one that waits for its streams."""
        return self.schedule.next_at

    @property
    def withheld(self) -> Ints:
        """Queries without an answer: one of their streams has never had a row, or they have no weights."""
        return np.flatnonzero(self.status == WITHHELD)

    @property
    def audits(self) -> Floats:
        """Audited ticks, those within the bound, those that the confidence asks for, and the number of audits."""
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

    def tick(
        self, now: float, streams: Ints, times: Floats, values: Floats, budget_ms: float = float("inf")
    ) -> Answers:
        """Take in the rows that came and evaluate the queries that are due. Without rows, only the clock moves.

        ``now`` is in the time of the streams. A ``now`` before the newest tick counts as the newest tick. If this tick
        comes later than expected, queries whose deadline is over by now, and was not yet due at the tick before, are
        first evaluated as of that tick.

        :param budget_ms: the processor time for evaluations. If the measured cost of all due queries exceeds it, the
            first ones in the chosen order are evaluated, and the others stay due.
        """
        schedule, before, period = self.schedule, self.now, self.stream_estimates.period
        began_ms = self.cost.now_ms()
        passed = schedule.passed_over(before, now, period, budget_ms)
        passed = passed[self._table.ticks(passed) < self.stream_estimates.tick]
        earlier = self._evaluate_all(passed, -np.inf)
        spent_ms = self.cost.now_ms() - began_ms
        self._absorb(now, streams, times, values)
        began_ms = self.cost.now_ms()
        left_until, period = schedule.next_tick(before, period), self.stream_estimates.period
        due = schedule.due(self.now, period)
        schedule.account(due, before, self.now)
        chosen = schedule.select(due, self._table.ticks(due), self.now, period, budget_ms)
        self._audit_waiting(schedule.postpone(due, chosen, self.now))
        answers = concatenate_answers([earlier, self._evaluate_all(chosen, left_until)])
        self.cost.add(spent_ms + self.cost.now_ms() - began_ms, schedule.work(passed) + schedule.work(chosen))
        self.evaluations += len(answers)
        return answers

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

    def _evaluate_all(self, due: Ints, left_until: float) -> Answers:
        """Evaluate some queries. A deadline before ``left_until`` was due at an earlier tick already."""
        if len(due) == 0:
            return concatenate_answers([])
        size = _CHUNK_QUERIES if self._extremes is None else max(_CHUNK_CELLS // max(self._extremes.instants, 16), 1)
        tick = Tick.of(self.stream_estimates, self._max_deferral(), self._seed)
        chunks = (due[at : at + size] for at in range(0, len(due), size))
        return concatenate_answers([self._evaluate(chunk, tick, left_until) for chunk in chunks])

    def _evaluate(self, due: Ints, tick: Tick, left_until: float) -> Answers:
        due, weights = self._answerable(due, tick)
        current, drift, variance = self._model_inputs(weights, tick)
        interrupted, interruption_error = self._interrupted(weights, due, tick)
        value, window = current, None
        if self._extremes is not None:
            value, window = self._extremes.answer(
                self.queries, weights, due, current, interrupted, self.stream_estimates
            )
        rows = self._table.take(due)
        promised = rows.epsilon()
        kept = self._kept(rows, due, value, promised, interrupted, tick.now)
        self._loops.learn(
            rows, kept, self._waited(rows, due, left_until, tick),
            None if self._linear else self._set_by_model[due], tick,
            lambda chosen, ticks: self._outside_at_random_tick(rows, due, weights, chosen, ticks, promised, tick),
        )  # fmt: skip
        rows.value = value
        epsilon = rows.epsilon()
        if self._extremes is None:
            wait = self._linear_deferral(rows, epsilon, drift, variance)
        else:
            wait, self._set_by_model[due] = self._extremes.deferral(
                rows, self._loops.caution(rows), epsilon, current, drift, variance, window, tick.now
            )
        next_at = tick.now + np.minimum(wait, tick.max_deferral)
        error_bound, status = epsilon, np.full(len(due), ANSWERED, dtype=np.int8)
        if tick.any_silent:
            guessed = interrupted > 0
            interval = self.options.while_interrupted or 5.0 * self.stream_estimates.period
            next_at = np.where(guessed, tick.now + interval, next_at)
            error_bound = np.where(guessed, interruption_error, epsilon)
            status[guessed] = GUESSED
        unknown = np.isnan(value)  # the landmark is still to come
        next_at[unknown], status[unknown], variance[unknown] = -np.inf, NEW, np.inf
        self._table.put(due, rows, tick.number)
        self.status[due] = status
        self.schedule.set_deadlines(due, next_at, self._moving.drift_of_error(drift), variance)
        self._moving.put(due, tick.now, drift)
        at = np.full(len(due), tick.now)
        return Answers(due, at, value, drift, error_bound, interrupted, next_at, kept)

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
        error = interruption_error(weights, self.estimator, self.silent, tick, self.options.sum_of_errors)
        return count, self.queries.z[due] * error

    def _linear_deferral(self, rows: AnswerRows, epsilon: Floats, drift: Floats, variance: Floats) -> Floats:
        scale = np.exp(-self._loops.caution(rows))
        drift = self._moving.drift_of_error(drift)
        wait = model.deferral(epsilon * scale, drift, np.sqrt(variance), rows.confidence, rows.z)
        if rows.lengthening is None:
            return wait
        budget = spending.to_spend(rows.earned, rows.mean_ticks) * self.stream_estimates.period
        return rows.lengthening.lengthened(wait, budget)

    def _kept(
        self, rows: AnswerRows, due: Ints, value: Floats, promised: Floats, interrupted: Ints, now: float
    ) -> Floats:
        """Whether the previous answer is still within its bound (1 or 0; NaN if that cannot be known)."""
        kept = (np.abs(value - self._moving.as_read(rows.value, due, now)) <= promised).astype(np.float64)
        kept[(self.status[due] != ANSWERED) | (interrupted > 0)] = np.nan
        return kept

    def _waited(self, rows: AnswerRows, due: Ints, left_until: float, tick: Tick) -> Floats:
        """For how many ticks each of the due queries has been left, although it was due before."""
        left = (self.next_at[due] < left_until) & (rows.tick < tick.number - 1)
        if not np.any(left):
            return np.zeros(len(due))
        overdue = np.floor((tick.now - self.next_at[due]) / max(self.stream_estimates.period, 1e-9))
        return np.where(left & np.isfinite(overdue), np.maximum(overdue, 1.0), 0.0)

    def _outside_at_random_tick(
        self,
        rows: AnswerRows,
        due: Ints,
        weights: sparse.csr_matrix,
        chosen: Ints,
        ticks: Floats,
        promised: Floats,
        tick: Tick,
    ) -> Floats:
        """For the rows ``chosen``: 1 if the answer was outside its bound at a random one of its first ``ticks``."""
        given = rows.tick[chosen]
        at = given + np.floor(tick.random.random(len(given)) * ticks).astype(np.int64)
        at = np.maximum(at - self.history.first_tick, 0)
        truth = self.history.aggregates(weights if len(chosen) == len(due) else weights[chosen], at)
        answer = self._moving.as_read(rows.value[chosen], due[chosen], self.history.times[at])
        return np.asarray(np.abs(truth - answer) > promised[chosen], dtype=np.float64)

    def _audit_waiting(self, waiting: Ints) -> None:
        """Look at some answers that are overdue and not renewed now: they too are what readers have."""
        self.waiting_judged = np.zeros(3)
        if len(waiting) == 0:
            return
        tick = Tick.of(self.stream_estimates, self._max_deferral(), self._seed + _WAITING_SEED)
        some = waiting[(self.status[waiting] == ANSWERED) & tick.sampled(len(waiting), WAITING_AUDIT_RATIO)]
        weights = self.queries.rows(some)
        current = weights @ tick.values
        interrupted, _ = self._interrupted(weights, some, tick)
        rows, value = self._table.take(some), current
        if self._extremes is not None:
            value, _ = self._extremes.answer(self.queries, weights, some, current, interrupted, self.stream_estimates)
        kept = self._kept(rows, some, value, rows.epsilon(), interrupted, tick.now)
        known = ~np.isnan(kept)
        found = np.array([np.count_nonzero(known), kept[known].sum(), rows.confidence[known].sum()])
        if not self._loops.audit_waiting(found):
            self.waiting_judged = found

    def _max_deferral(self) -> float:
        """By default no deferral is longer than the time that the estimates look back on."""
        if self.options.max_deferral is not None:
            return self.options.max_deferral
        return self.stream_estimates.median_estimated_span()

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything that a restart needs except the queries, as arrays by name: about 32 bytes per query."""
        own: dict[str, NDArray[Any]] = {
            "flags": (self.status | (self._set_by_model.astype(np.int8) << _STATUS_BITS)).astype(np.uint8),
            **self._table.snapshot(),
            **self.schedule.snapshot(),
            **self._moving.snapshot(),
        }
        shared = {"evaluations": np.array([self.evaluations]), **self.stream_estimates.snapshot()}
        shared |= self.cost.snapshot()
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
        self.cost.resume(snapshot)
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
        self.status[into] = flags & ((1 << _STATUS_BITS) - 1)
        self._set_by_model[into] = flags >> _STATUS_BITS
        self._table.resume(own, into)
        self.schedule.resume(own, into)
        self._moving.resume(own, into)
        if self._extremes is not None:
            self._extremes.resume_queries(own, into)


def _some(arrays: dict[str, NDArray[Any]], rows: Ints) -> dict[str, NDArray[Any]]:
    return {name: array[rows] for name, array in arrays.items()}
