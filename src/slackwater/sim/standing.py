"""Standing queries on recorded streams: what was promised against what was held, tick by tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.errors import InvalidData
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.sim.optimum import fewest_evaluations
from slackwater.sim.ticks import TickTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CELLS = 60_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Interruption:
    """One answer given while so many streams of its query were silent: since when, how wrong, how wrong it said."""

    silent: int
    elapsed_ms: float
    error: float
    said: float


@dataclass(frozen=True, slots=True, eq=False)
class StandingRun:
    """What a run showed, one entry a query.

    ``fidelity``: the share of ticks at which the held answer was within its bound. ``hit_rate``: the share of
    re-evaluations that found the old answer within it. Ticks at which a stream of the query was silent, or before the
    query's first answer, are not counted, since the truth is not known there. ``normality`` is the last Shapiro–Wilk
    p-value of each stream's increments.
    """

    fidelity: Floats
    hit_rate: Floats
    evaluations: Ints
    naive_evaluations: Ints
    counted: Ints
    normal_ratio: float
    normality: Floats
    interruptions: list[Interruption]


def true_answers(table: TickTable, queries: QuerySet, options: EvaluatorOptions) -> Floats:
    """Every query's exact answer at every tick (ticks × queries), from the last known values."""
    if table.ticks * queries.queries > MOST_CELLS:
        raise InvalidData(
            "too-much-truth",
            f"{queries.queries} queries × {table.ticks} ticks are too many to know every true answer",
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
    """The table with ``count`` streams silenced for that long, again and again, others each time.

    Between two interruptions the streams run undisturbed for at least as long, and long enough to be estimated anew.
    """
    if not 0 < count <= len(table.names):
        raise InvalidData("invalid-interruption", f"{count} of {len(table.names)} streams", "interrupt some of them")
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
    """Replay the table through the evaluator; ``full`` is the table before streams were silenced."""
    if truth is None:
        truth = true_answers(full or table, queries, options)
    evaluator = StandingEvaluator(queries, options, seed=seed)
    size = queries.queries
    held, held_drift, held_at, epsilon = np.full(size, np.nan), np.zeros(size), np.zeros(size), np.zeros(size)
    good, counted, hits, judged, evaluations = (np.zeros(size, dtype=np.int64) for _ in range(5))
    pattern = queries.weights.copy()
    pattern.data[:] = 1.0
    hidden = np.isnan(table.values) & ~np.isnan(full.values) if full is not None else None
    episodes: list[Interruption] = []
    normal: list[float] = []
    for tick, now in enumerate(table.times):
        streams = np.flatnonzero(~np.isnan(table.values[tick]))
        answers = evaluator.tick(float(now), streams, np.full(len(streams), now), table.values[tick, streams])
        mine = answers.query
        evaluations[mine] += 1
        told = ~np.isnan(answers.kept)
        judged[mine[told]] += 1
        hits[mine[told]] += answers.kept[told].astype(np.int64)
        held[mine], held_at[mine] = answers.value, now
        held_drift[mine] = answers.drift if options.value_and_drift else 0.0
        epsilon[mine] = answers.error_bound
        unsure = evaluator.silent if hidden is None else evaluator.silent | hidden[tick]
        known = np.ones(size, dtype=np.bool_)
        if np.any(unsure):
            known = (pattern @ unsure.astype(np.float64)) == 0.0
        known &= ~np.isnan(held) & ~np.isnan(truth[tick])
        answer = held + held_drift * (now - held_at) if options.value_and_drift else held
        with np.errstate(invalid="ignore"):
            inside = np.abs(truth[tick] - answer) <= epsilon
        counted += known
        good += known & inside
        if hidden is not None and np.any(answers.interrupted > 0):
            episodes += _episode(evaluator, answers.query, answers.interrupted, answer, truth[tick], epsilon, now)
        if tick % 256 == 255:
            normal.append(float(np.nanmean(evaluator.normality.normal())))
            if report is not None:
                report((tick + 1) / table.ticks)
    with np.errstate(divide="ignore", invalid="ignore"):
        return StandingRun(
            good / counted,
            hits / judged,
            evaluations,
            np.full(size, table.ticks, dtype=np.int64),
            counted,
            float(np.mean(normal)) if normal else float("nan"),
            evaluator.normality.p_values,
            episodes,
        )


def _episode(
    evaluator: StandingEvaluator, query: Ints, silent: Ints, answer: Floats, truth: Floats, said: Floats, now: float
) -> list[Interruption]:
    elapsed = now - evaluator.estimator.last_time
    found = []
    for row in query[silent > 0]:
        streams = evaluator.queries.weights.indices[slice(*evaluator.queries.weights.indptr[row : row + 2])]
        gone = elapsed[streams][evaluator.silent[streams]]
        error = abs(float(truth[row] - answer[row]))
        found.append(Interruption(len(gone), float(gone.max()), error, float(said[row])))
    return found


def optimal_evaluations(truth: Floats, queries: QuerySet) -> Ints:
    """The offline minimum of every query."""
    fewest = np.zeros(queries.queries, dtype=np.int64)
    for row in range(queries.queries):
        series = truth[:, row][~np.isnan(truth[:, row])]
        bound = queries.bound[row] * (np.abs(series) if queries.relative[row] else 1.0)
        fewest[row] = fewest_evaluations(series, bound)
    return fewest


def average_queries(streams: int, of: int, count: int, seed: int = 0) -> Floats:
    """Weights of ``count`` averages of ``of`` streams: all but one each where that is what is asked, else drawn."""
    if of > streams or of < 1:
        raise InvalidData("too-few-streams", f"an average of {of} needs as many streams, not {streams}", "use fewer")
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
