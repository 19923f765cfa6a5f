"""The standing-query evaluator: every tick, exactly the queries whose answers may no longer be good enough."""

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
from slackwater.kernel.standing.answers import Answers, together
from slackwater.kernel.standing.calibration_loops import CalibrationLoops, Chosen
from slackwater.kernel.standing.due_mask import DueMask
from slackwater.kernel.standing.history import History
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet, some_rows
from slackwater.kernel.standing.stream_estimates import SIGNIFICANT, StreamEstimates, below
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEW, ANSWERED, GUESSED, WITHHELD = range(4)

_FEW = 4  # where more than one in four is read, neighbours share cache lines
_ROWS, _CELLS = 1 << 17, 1 << 20  # at once: queries, and of windows the ticks of all queries


class StandingEvaluator:
    """Holds each query's answer within its bound with its confidence, evaluating a query only when that demands it.

    A tick costs the rows that came, the queries that are due (their rows of the weight matrix, one scan of the window
    for MIN and MAX) and one look at the next evaluation times. State is some 90 bytes a query and 40·k a stream, and
    weights are held twice where all queries have as many streams and few are due at a time. It cannot keep a bound
    that a stream breaks within a single tick; it then evaluates at every tick.
    """

    def __init__(self, queries: QuerySet, options: EvaluatorOptions | None = None, *, seed: int = 0) -> None:
        self.options = options or EvaluatorOptions()
        self.method = deferral_method(self.options.method)
        self.queries = queries
        self.stream_estimates = StreamEstimates(queries.streams, self.method, self.options)
        self.evaluations = 0
        self._loops = CalibrationLoops(self.method, self.options.aggregate == "linear")
        self._seed = seed
        self._sign = -1.0 if self.options.aggregate == "min" else 1.0
        self._fresh_state(queries.queries)

    def _fresh_state(self, size: int) -> None:
        self.next_at = np.full(size, -np.inf)
        self._due = DueMask(size)
        self.status = np.zeros(size, dtype=np.int8)
        # Of windows only the ends of deferrals are looked at, so that nothing is earned.
        self._answers = AnswerTable(self.queries, self.method.spends and self.options.aggregate == "linear")
        self._few_at: int | None = None
        self._held_at = np.zeros(size)
        self._held_drift = np.zeros(size)
        self._extreme = np.full(size, -np.inf)
        self._by_model = np.ones(size, dtype=np.bool_)

    @property
    def withheld(self) -> Ints:
        """Queries without an answer, since a stream of theirs has never been seen or they have no weights at all."""
        return np.flatnonzero(self.status == WITHHELD)

    @property
    def audits(self) -> Floats:
        """Ticks that audits looked back on, those within the bound, and those that the confidence asks for."""
        return self._loops.audits

    @property
    def now(self) -> float:
        """The time of the last tick."""
        return self.stream_estimates.now

    @property
    def silent(self) -> NDArray[np.bool_]:
        """Streams that were found interrupted at the last tick."""
        return self.stream_estimates.silent

    @property
    def estimator(self) -> StreamEstimator:
        """What is estimated of every stream."""
        return self.stream_estimates.estimator

    @property
    def normality(self) -> NormalityWatch:
        """Whether the increments of every stream are normal."""
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

    def tick(self, now: float, streams: Ints, times: Floats, values: Floats) -> Answers:
        """Take in the rows that came, and evaluate what is due at ``now``; without rows, a tick of the clock alone.

        ``now`` is in the time of the streams and must not run backwards: a tick before the last one counts as at it.
        """
        self.absorb(now, streams, times, values)
        now, period = self.now, self.stream_estimates.period
        # Zhu 2004, footnote 1: the last tick that is not after the deadline.
        if period == 0.0:
            np.less_equal(self.next_at, now, out=self._due.mask)
        else:
            np.less(self.next_at, now + period * (1.0 - 1e-9), out=self._due.mask)
        answers = self._evaluate_all(self._admitted(self._due.found(), now))
        self.evaluations += len(answers)
        return answers

    def absorb(self, now: float, streams: Ints, times: Floats, values: Floats) -> None:
        """Take in the rows of a tick and evaluate nothing: a window's extreme needs every tick, an answer does not."""
        appeared, returned = self.stream_estimates.absorb(now, streams, times, values)
        if appeared:
            self.next_at[self.status == WITHHELD] = -np.inf
        if returned:
            self.next_at[self.status == GUESSED] = -np.inf

    def _admitted(self, due: Ints, now: float) -> Ints:
        """All that are due, or under overload as many as fit, in the order of least penalty."""
        if self.options.capacity is None or len(due) <= self.options.capacity:
            return due
        rows = self.queries.rows(due)
        loadings, specific = self.stream_estimates.covariance()
        known = np.where(np.isfinite(specific), specific, 0.0)
        diffusion = np.sqrt(rows.power(2) @ known + np.square(rows @ loadings).sum(axis=1))
        deadline = np.where(np.isfinite(self.next_at[due]), self.next_at[due], now - self.stream_estimates.period)
        work = np.full(len(due), max(self.stream_estimates.period, 1e-9) / self.options.capacity)
        pending = scheduler.Pending(self._held_at[due], deadline, work, rows @ self.estimator.drift, diffusion)
        order = scheduler.order(self.options.order)(now, pending, max(self.stream_estimates.period, 1e-9))
        return np.sort(due[order[: self.options.capacity]])

    def _read(self, due: Ints, tick: int) -> tuple[NDArray[Any] | None, sparse.csr_matrix]:
        """The weights of some queries and, where it was read with them, what is held of each."""
        few = len(due) > 0 and int(due[-1] - due[0]) >= _FEW * len(due)
        if not (few and self.queries.width):
            return None, self.queries.rows(due)
        if not self._answers.with_weights:
            self._few_at = tick if self._few_at is None else self._few_at
            if self._few_at == tick:
                # An evaluator that lives for one tick, as on Spark, would move far more than it reads.
                return None, self.queries.rows(due)
            self._answers.move_weights_in(self.queries)
        return self._answers.read(due, self.queries.streams)

    def _evaluate_all(self, due: Ints) -> Answers:
        linear = self.options.aggregate == "linear"
        size = _ROWS if linear else max(_CELLS // max(len(self.history.times), 16), 1)
        moment = Tick.of(self.stream_estimates, self._longest(), self._seed)
        return together([self._evaluate(due[at : at + size], moment) for at in range(0, len(due), size)])

    def _evaluate(self, due: Ints, moment: Tick) -> Answers:
        chosen = due
        taken, rows = self._read(due, moment.tick)
        due, rows = self._answerable(due, rows, moment)
        now = moment.now
        # Zhu 2004, Eq. (2), (6), for all due queries together
        current, drift = rows @ moment.values, rows @ moment.drift
        variance = _squared(rows) @ moment.specific
        for loadings in moment.loadings:
            variance += np.square(rows @ loadings)
        if self.method.doubtful_drift:
            drift[np.square(drift) * moment.span < SIGNIFICANT * variance] = 0.0
        silent, error = self._guessed(rows, due, moment)
        linear = self.options.aggregate == "linear"
        value, block = (current, None) if linear else self._extremes(rows, due, now)
        certain: Floats | float = np.inf
        held = self._answers.take(due, taken if len(due) == len(chosen) else None)
        answered = self.status[due] == ANSWERED
        promised = held.epsilon()
        kept = self._judged(held, due, value, promised, answered, silent, now)
        by_model = None if linear else self._by_model[due]
        self._loops.learn(
            held, kept, by_model, moment, lambda chosen: self._audited(held, due, rows, chosen, promised, moment)
        )
        held.value = value
        epsilon = held.epsilon()
        if block is not None:
            certain = certain_time(block, self._window_times(now), now, float(self.options.window or 0.0), epsilon)
        scale = np.exp(-self._loops.caution(held))
        if linear:
            pull = np.zeros_like(drift) if self.options.value_and_drift else drift
            wait = model.deferral(epsilon * scale, pull, np.sqrt(variance), held.confidence, held.z)
            if held.lengthening is not None:
                wait = held.lengthening.lengthened(
                    wait, spending.to_spend(held.earned, held.mean_ticks) * self.stream_estimates.period
                )
        else:
            room = (self._sign * (value - current) + epsilon) * scale
            rise = model.rise_time(room, self._sign * drift, np.sqrt(variance), held.confidence)
            rise = np.where(np.isnan(rise), 0.0, rise)
            self._by_model[due] = rise < certain
            wait = np.minimum(rise, certain)  # Zhu 2004, Eq. (11)
        next_at = now + np.minimum(wait, moment.longest)
        if moment.any_silent:
            interval = self.options.while_interrupted or 5.0 * self.stream_estimates.period
            next_at = np.where(silent > 0, now + interval, next_at)
        self._answers.put(due, held, moment.tick)
        if self._timed:
            self._held_at[due], self._held_drift[due] = now, drift
        self.next_at[due] = next_at
        if moment.any_silent:
            self.status[due] = np.where(silent > 0, GUESSED, ANSWERED)
        elif not np.all(answered):
            self.status[due] = ANSWERED
        bound = np.where(silent > 0, error, epsilon) if moment.any_silent else epsilon
        return Answers(due, value, drift, bound, silent, next_at, kept)

    @property
    def _timed(self) -> bool:
        """Whether the time of an answer is needed, and not its tick alone."""
        return self.options.value_and_drift or self.options.capacity is not None

    def _answerable(self, due: Ints, rows: sparse.csr_matrix, moment: Tick) -> tuple[Ints, sparse.csr_matrix]:
        """Without the queries that lean on a stream never seen, or on none at all: those wait."""
        if self.queries.width and moment.unseen is None:
            return due, rows
        missing = np.diff(rows.indptr) == 0
        if moment.unseen is not None:
            missing |= (_pattern(rows) @ moment.unseen.astype(np.float64)) > 0.0
        if not np.any(missing):
            return due, rows
        self.status[due[missing]] = WITHHELD
        self.next_at[due[missing]] = np.inf
        keep = np.flatnonzero(~missing)
        return due[keep], rows[keep]

    def _guessed(self, rows: sparse.csr_matrix, due: Ints, moment: Tick) -> tuple[Ints, Floats]:
        """How many streams of each query are silent, and ε_intr."""
        if not moment.any_silent:
            return np.zeros(len(due), dtype=np.int64), np.zeros(0)
        count = (_pattern(rows) @ self.silent.astype(np.float64)).astype(np.int64)
        spread = interruptions.unknown_spread(self.estimator, moment.now, self.silent)
        if self.options.sum_of_errors:
            error = abs(rows) @ spread
        else:
            scale = np.divide(spread, self.estimator.diffusion, out=np.zeros_like(spread), where=spread > 0.0)
            own = np.where(self.silent, moment.specific, 0.0) * np.square(scale)
            square = _squared(rows) @ own
            for loadings in moment.loadings:
                square += np.square(rows @ (loadings * scale))
            error = np.sqrt(square)
        return count, self.queries.z[due] * error

    def _window_times(self, now: float) -> Floats:
        times = self.history.times
        return times[np.searchsorted(times, now - float(self.options.window or 0.0)) :]

    def _extremes(self, rows: sparse.csr_matrix, due: Ints, now: float) -> tuple[Floats, Floats | None]:
        """The extreme over each query's window, and the aggregate at the window's ticks, signed to a maximum."""
        if self.options.landmark is None:
            values = self.history.values[-len(self._window_times(now)) :]
            block = self._sign * (rows @ values.T)  # Zhu 2004, Eq. (10)
            return self._sign * block.max(axis=1), block
        # Zhu 2004, Eq. (12): only the ticks since the last evaluation are new.
        since = self.history.times >= self.options.landmark
        last = np.where(self.status[due] == NEW, -1, self._answers.ticks(due))
        oldest = max(int(last.min()) + 1 - self.history.first_tick, 0) if len(due) else 0
        values = self.history.values[oldest:][since[oldest:]]
        if len(values):
            self._extreme[due] = np.maximum(self._extreme[due], (self._sign * (rows @ values.T)).max(axis=1))
        before_landmark = ~np.isfinite(self._extreme[due])
        return np.where(before_landmark, np.nan, self._sign * self._extreme[due]), None

    def _judged(
        self,
        held: AnswerRows,
        due: Ints,
        value: Floats,
        promised: Floats,
        answered: NDArray[np.bool_],
        silent: Ints,
        now: float,
    ) -> Floats:
        answer = held.value
        if self.options.value_and_drift and self.options.aggregate == "linear":
            answer = answer + self._held_drift[due] * (now - self._held_at[due])  # Zhu 2004, Eq. (8)
        kept = (np.abs(value - answer) <= promised).astype(np.float64)
        kept[~answered | (silent > 0)] = np.nan
        return kept

    def _audited(
        self, held: AnswerRows, due: Ints, rows: sparse.csr_matrix, chosen: Chosen, promised: Floats, moment: Tick
    ) -> Floats:
        """Whether the held answer was outside its bound at a random tick while it stood (1) or not (0)."""
        given = held.tick[chosen]
        at = given + np.floor(moment.draw.random(len(given)) * (moment.tick - given)).astype(np.int64)
        at = np.maximum(at - self.history.first_tick, 0)
        if not isinstance(chosen, slice):
            rows = some_rows(rows, chosen, self.queries.width)
        truth = self.history.aggregates(rows, at, self.queries.width)
        answer = held.value[chosen]
        if self.options.value_and_drift:
            past = self.history.times[at] - self._held_at[due[chosen]]
            answer = answer + self._held_drift[due[chosen]] * past
        return np.asarray(np.abs(truth - answer) > promised[chosen], dtype=np.float64)

    def _longest(self) -> float:
        """Never longer than the evidence goes back."""
        if self.options.max_deferral is not None:
            return self.options.max_deferral
        longest = self.stream_estimates.looked_back_on()
        if self.options.landmark is not None:
            longest = min(longest, (self.options.k - 1) * self.stream_estimates.period)
        return longest

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on after a restart, as arrays by name (the queries themselves excepted).

        Some 34 bytes a query: what the bound and the history tell is left out.
        """
        own = {f"query.{name}": array for name, array in self._by_query().items()}
        return {"evaluations": np.array([self.evaluations]), **own, **self.stream_estimates.snapshot()}

    def _by_query(self) -> dict[str, NDArray[Any]]:
        """What is held for each query, as arrays by name."""
        own: dict[str, NDArray[Any]] = {
            "next_at": self.next_at,
            "flags": (self.status | (self._by_model.astype(np.int8) << 2)).astype(np.uint8),
            **self._answers.snapshot(),
        }
        if self._timed:
            own |= {"held_at": self._held_at, "held_drift": self._held_drift}
        if self.options.landmark is not None:
            own["extreme"] = self._extreme
        return own

    def _take_up(self, mine: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Put what was held for some queries in its place."""
        flags = mine["flags"].astype(np.int8)
        self.next_at[into], self.status[into], self._by_model[into] = mine["next_at"], flags & 3, flags > 3
        self._answers.resume(mine, into)
        if "held_at" in mine:
            self._held_at[into], self._held_drift[into] = mine["held_at"], mine["held_drift"]
        if "extreme" in mine:
            self._extreme[into] = mine["extreme"]

    def resume(
        self,
        snapshot: dict[str, NDArray[Any]],
        came_from: Ints | None = None,
        same: NDArray[np.bool_] | None = None,
    ) -> None:
        """Go on from a snapshot of an evaluator with the same options.

        ``came_from``: where each query stood in the snapshot, −1 for a new one, unless they are the same ones. A
        query that is not the ``same`` (all are, unless given) is evaluated at once, and keeps what was learned of it.
        """
        self.evaluations = int(snapshot["evaluations"][0])
        mine = below(snapshot, "query.")
        if came_from is None:
            self._take_up(mine, slice(None))
        else:
            known = came_from >= 0
            same = known if same is None else known & same
            self._take_up({name: array[came_from[same]] for name, array in mine.items()}, np.flatnonzero(same))
            self._answers.learned(
                {name: array[came_from[known]] for name, array in mine.items()}, np.flatnonzero(known)
            )
        self.stream_estimates.resume(snapshot)
        self.queries = self.queries.over(max(self.queries.streams, self.estimator.streams))
        self.stream_estimates.grow(self.queries.streams)


def _squared(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.square(rows.data), rows.indices, rows.indptr), shape=rows.shape)


def _pattern(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones_like(rows.data), rows.indices, rows.indptr), shape=rows.shape)
