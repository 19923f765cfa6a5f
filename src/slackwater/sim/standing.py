"""Replays recorded streams through the evaluator and compares every answer with the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.errors import InvalidData
from slackwater.kernel.standing.answers import Answers
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.sim.optimum import fewest_evaluations
from slackwater.sim.ticks import TickTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CELLS = 60_000_000
_TICKS_PER_REPORT = 256


@dataclass(frozen=True, slots=True, eq=False)
class InterruptedAnswer:
    """An answer given while streams of its query were silent.

    ``silent`` is how many, ``elapsed_ms`` the longest silence among them, ``error`` the true error and ``error_bound``
    the one that the answer stated.
    """

    silent: int
    elapsed_ms: float
    error: float
    error_bound: float


@dataclass(frozen=True, slots=True, eq=False)
class StandingRun:
    """The results of a run, one entry per query.

    ``fidelity``: the share of ticks at which the answer was within its bound. ``hit_rate``: the share of re-evaluations
    that found the old answer within its bound. Ticks before a query's first answer, or while one of its streams was
    silent, are not ``counted``, because the truth is not known there. ``normality`` is the last Shapiro–Wilk p-value of
    each stream's increments.
    """

    fidelity: Floats
    hit_rate: Floats
    evaluations: Ints
    naive_evaluations: Ints
    counted: Ints
    normal_ratio: float
    normality: Floats
    interrupted_answers: list[InterruptedAnswer]


def true_answers(table: TickTable, queries: QuerySet, options: EvaluatorOptions) -> Floats:
    """Every query's exact answer at every tick (ticks × queries), from the last known values."""
    if table.ticks * queries.queries > MOST_CELLS:
        raise InvalidData(
            "too-much-truth",
            f"{queries.queries} queries × {table.ticks} ticks are too many to compute every true answer",
            "use fewer queries",
        )
    linear = np.asarray((queries.weights @ table.filled().T).T)
    if options.aggregate == "linear":
        return linear
    if options.window is None:
        since = np.where((table.times >= (options.landmark or 0.0))[:, None], linear, np.nan)
        frame = pd.DataFrame(since)
        return np.asarray((frame.cummax() if options.aggregate == "max" else frame.cummin()).to_numpy())
    frame = pd.DataFrame(linear, index=pd.to_datetime(table.times * 1e3, unit="us"))
    rolling = frame.rolling(pd.Timedelta(options.window, unit="ms"), closed="both", min_periods=1)
    return np.asarray((rolling.max() if options.aggregate == "max" else rolling.min()).to_numpy())


def hide(table: TickTable, count: int, lasting_ms: float, seed: int = 0) -> TickTable:
    """The table with ``count`` random streams silenced for ``lasting_ms``, again and again.

    Between two interruptions all streams run for at least as long, and long enough to be estimated again.
    """
    if not 0 < count <= len(table.names):
        raise InvalidData(
            "invalid-interruption",
            f"cannot interrupt {count} of {len(table.names)} streams",
            f"interrupt 1 to {len(table.names)} of them",
        )
    draw = np.random.default_rng(seed)
    values = table.values.copy()
    rest = max(lasting_ms, 120 * table.period_ms)
    start = table.times[0] + rest
    while start + lasting_ms < table.times[-1]:
        during = (table.times >= start) & (table.times < start + lasting_ms)
        values[np.ix_(during, draw.choice(len(table.names), count, replace=False))] = np.nan
        following = np.searchsorted(table.times, start + lasting_ms + rest)
        if following >= table.ticks:
            break
        start = table.times[following]
    return TickTable(table.times, values, table.names)


class _Tally:
    """The current answer of every query and the counts of one run."""

    def __init__(self, queries: QuerySet, options: EvaluatorOptions) -> None:
        size = queries.queries
        self._moves = options.value_and_drift
        self._pattern = queries.weights.copy()
        self._pattern.data[:] = 1.0
        self._answer, self._drift, self._given_at = np.full(size, np.nan), np.zeros(size), np.zeros(size)
        self.error_bound = np.zeros(size)
        self.good, self.counted, self.hits, self.judged, self.evaluations = (
            np.zeros(size, dtype=np.int64) for _ in range(5)
        )

    def take(self, answers: Answers) -> None:
        """Take over the answers of a tick. A query may have two, of which the second is newer."""
        mine = answers.query
        judged = ~np.isnan(answers.kept)
        np.add.at(self.evaluations, mine, 1)
        np.add.at(self.judged, mine[judged], 1)
        np.add.at(self.hits, mine[judged], answers.kept[judged].astype(np.int64))
        self._answer[mine], self._given_at[mine] = answers.value, answers.at
        self._drift[mine] = answers.drift if self._moves else 0.0
        self.error_bound[mine] = answers.error_bound

    def compare(self, truth: Floats, unknown_streams: NDArray[np.bool_], now: float) -> Floats:
        """Compare every answer with the truth at ``now``; return the answers as readers see them."""
        known = ~np.isnan(self._answer) & ~np.isnan(truth)
        if np.any(unknown_streams):
            known &= (self._pattern @ unknown_streams.astype(np.float64)) == 0.0
        answer = self._answer + self._drift * (now - self._given_at) if self._moves else self._answer
        with np.errstate(invalid="ignore"):
            inside = np.abs(truth - answer) <= self.error_bound
        self.counted += known
        self.good += known & inside
        return answer


def run_standing(
    table: TickTable,
    queries: QuerySet,
    options: EvaluatorOptions,
    *,
    truth: Floats | None = None,
    full: TickTable | None = None,
    seed: int = 0,
    report: Callable[[float], None] | None = None,
) -> StandingRun:
    """Replay the table through the evaluator.

    :param truth: the result of ``true_answers``; computed if not given.
    :param full: the table before streams were silenced with ``hide``.
    :param report: called now and then with the share of ticks done.
    """
    if truth is None:
        truth = true_answers(full or table, queries, options)
    evaluator = StandingEvaluator(queries, options, seed=seed)
    tally = _Tally(queries, options)
    hidden = np.isnan(table.values) & ~np.isnan(full.values) if full is not None else None
    interrupted_answers: list[InterruptedAnswer] = []
    normal: list[float] = []
    for tick, now in enumerate(table.times):
        streams = np.flatnonzero(~np.isnan(table.values[tick]))
        answers = evaluator.tick(float(now), streams, np.full(len(streams), now), table.values[tick, streams])
        tally.take(answers)
        unknown = evaluator.silent if hidden is None else evaluator.silent | hidden[tick]
        current = tally.compare(truth[tick], unknown, now)
        guessed = answers.query[(answers.interrupted > 0) & (answers.at == now)]
        if hidden is not None and len(guessed):
            errors = np.abs(truth[tick] - current)
            interrupted_answers += _interrupted_answers(evaluator, guessed, errors, tally.error_bound, now)
        if (tick + 1) % _TICKS_PER_REPORT == 0:
            normal.append(float(np.nanmean(evaluator.normality.normal())))
            if report is not None:
                report((tick + 1) / table.ticks)
    with np.errstate(divide="ignore", invalid="ignore"):
        return StandingRun(
            fidelity=tally.good / tally.counted,
            hit_rate=tally.hits / tally.judged,
            evaluations=tally.evaluations,
            naive_evaluations=np.full(queries.queries, table.ticks, dtype=np.int64),
            counted=tally.counted,
            normal_ratio=float(np.mean(normal)) if normal else float("nan"),
            normality=evaluator.normality.p_values,
            interrupted_answers=interrupted_answers,
        )


def _interrupted_answers(
    evaluator: StandingEvaluator, guessed: Ints, errors: Floats, error_bounds: Floats, now: float
) -> list[InterruptedAnswer]:
    elapsed = now - evaluator.estimator.last_time
    weights = evaluator.queries.weights
    found = []
    for row in guessed:
        streams = weights.indices[slice(*weights.indptr[row : row + 2])]
        silences = elapsed[streams][evaluator.silent[streams]]
        found.append(
            InterruptedAnswer(len(silences), float(silences.max()), float(errors[row]), float(error_bounds[row]))
        )
    return found


def optimal_evaluations(truth: Floats, queries: QuerySet) -> Ints:
    """The fewest evaluations of each query that would have kept its answer within its bound at every tick."""
    fewest = np.zeros(queries.queries, dtype=np.int64)
    for row in range(queries.queries):
        series = truth[:, row][~np.isnan(truth[:, row])]
        bound = queries.bound[row] * (np.abs(series) if queries.relative[row] else 1.0)
        fewest[row] = fewest_evaluations(series, bound)
    return fewest


def average_queries(streams: int, of: int, count: int, seed: int = 0) -> Floats:
    """Weights of ``count`` averages of ``of`` streams each.

    The members are random, except for ``of = streams − 1``: then each query leaves out another stream.
    """
    if of > streams or of < 1:
        raise InvalidData(
            "too-few-streams", f"an average of {of} streams needs at least as many, not {streams}", "use fewer"
        )
    weights = np.zeros((count, streams))
    draw = np.random.default_rng(seed)
    for row in range(count):
        members = (
            np.delete(np.arange(streams), row % streams)
            if of == streams - 1
            else draw.choice(streams, of, replace=False)
        )
        weights[row, members] = 1.0 / of
    return weights
