"""MAX and MIN of aggregates over a moving window or since a landmark: exact at every evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral import model
from slackwater.control.deferral.windows import certain_time
from slackwater.kernel.standing.answer_table import AnswerRows
from slackwater.kernel.standing.instants import InstantLog
from slackwater.kernel.standing.matrices import pattern
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import with_prefix, without_prefix
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.stream_estimates import StreamEstimates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Block = tuple[Floats, Floats]

_FOLD_INSTANTS = 64  # folded together
_FOLD_CELLS = 1 << 20  # queries × instants, to bound memory
_MAX_OPEN_INSTANTS = 256  # kept for late rows of slow streams, besides those of the newest tick
_ROUNDING = 1e-12  # of the sum of a bound's absolute terms


class Extremes:
    """The instants that windows or landmarks still need, and for landmarks each query's extreme until then.

    A window keeps all rows in it. An evaluation scans them: it costs the weights of the due queries times the instants.

    Since a landmark, an instant is *final* once every stream that is not silent had a row at it or after it; rows may
    still change the others. Final instants are folded into the running extremes, for a query when it is evaluated, and
    for all queries before the instants are forgotten. A row that comes after its instant became final is combined with
    the values that the other streams had last.
    """

    def __init__(self, queries: QuerySet, options: EvaluatorOptions) -> None:
        self._options = options
        self._sign = -1.0 if options.aggregate == "min" else 1.0
        self._log = InstantLog(np.full(queries.streams, np.nan))
        self._final = -np.inf
        self._extreme = np.full(queries.queries, np.nan)  # negated for a minimum, as everything in here
        self._folded = np.full(queries.queries, -np.inf)  # the instant up to which ``_extreme`` holds

    @property
    def instants(self) -> int:
        """The number of instants kept."""
        return len(self._log.instants)

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        self._log.grow(streams)

    def absorb(
        self, queries: QuerySet, before: float, now: float, streams: Ints, times: Floats, values: Floats, final: float
    ) -> None:
        """Take in the rows of a tick at ``now``, given the tick before it and the newest final instant."""
        if self._options.window is not None:
            self._log.append(now, streams, times, values)
            self._log.cut(now - self._options.window)
            return
        late = times <= self._final
        if np.any(late):
            after = float(np.nextafter(self._final, np.inf))
            past = InstantLog(self._log.values_before(after))
            past.append(float(times[late].max()), streams[late], times[late], values[late])
            self._fold(queries, np.arange(queries.queries), past.blocks(self._landmark))
            times = np.where(late, after, times)
        self._log.append(now, streams, times, values)
        instants = self._log.instants
        most_open = int(np.searchsorted(instants, before, side="right")) - _MAX_OPEN_INSTANTS
        forced = instants[most_open - 1] if most_open > 0 else -np.inf
        self._final = max(self._final, min(final, now), forced)
        if np.searchsorted(instants, self._final, side="right") > self._options.k:
            self._forget_final(queries)

    @property
    def _landmark(self) -> float:
        return -np.inf if self._options.landmark is None else self._options.landmark

    def _forget_final(self, queries: QuerySet) -> None:
        """Fold all final instants into the extremes of all queries, and drop them."""
        rows = np.flatnonzero(self._folded < self._final)
        if len(rows):
            since = max(self._landmark, float(np.nextafter(self._folded[rows].min(), np.inf)))
            self._fold(queries, rows, _until(self._log.blocks(since), self._final))
            self._folded[rows] = self._final
        self._log.cut(float(np.nextafter(self._final, np.inf)))

    def _fold(self, queries: QuerySet, rows: Ints, blocks: Iterable[Block]) -> None:
        """Raise the extremes of some queries to the values in ``blocks``.

        Most queries are far below their extreme. The extremes of the streams show that, without a look at each instant.
        """
        weights = self._sign * queries.rows(rows)
        positive, negative = weights.maximum(0.0), weights.minimum(0.0)
        for _, values in blocks:
            for at in range(0, len(values), _FOLD_INSTANTS):
                part = values[at : at + _FOLD_INSTANTS]
                higher = np.arange(len(rows))
                if queries.members == "all":
                    limit, known = _upper_limit(positive, negative, part), self._extreme[rows]
                    higher = np.flatnonzero((limit > known) | (np.isnan(known) & ~np.isnan(limit)))
                for some in np.array_split(higher, max(len(higher) * len(part) // _FOLD_CELLS, 1)):
                    found = np.fmax.reduce(self._weighted(weights[some], part, queries), axis=1)
                    self._extreme[rows[some]] = np.fmax(self._extreme[rows[some]], found)

    def answer(
        self,
        queries: QuerySet,
        weights: sparse.csr_matrix,
        due: Ints,
        current: Floats,
        interrupted: Ints,
        estimates: StreamEstimates,
    ) -> tuple[Floats, Block | None]:
        """Each due query's extreme, and for windows the aggregate at every instant in it, negated for a minimum.

        :param current: the aggregates now, with guesses for silent streams; ``interrupted`` counts these streams.
        """
        now = estimates.now
        if self._options.landmark is None:
            guess = None
            if np.any(interrupted):
                drift = np.where(estimates.silent, estimates.trusted_drift(), 0.0)
                guess = Guess(drift, estimates.estimator.last_time)
            window = self.window(queries, weights, now, guess)
            return self._sign * np.fmax.reduce(window[1], axis=1), window  # Zhu 2004, Eq. (10)
        known = self.since_landmark(queries, weights, due)
        # A guess is part of the answer while the stream is silent, and forgotten when it returns.
        with_guess = self._sign * np.fmax(self._sign * known, self._sign * current)
        return np.where((interrupted > 0) & (now >= self._options.landmark), with_guess, known), None

    def deferral(
        self,
        rows: AnswerRows,
        caution: Floats,
        epsilon: Floats,
        current: Floats,
        drift: Floats,
        variance: Floats,
        window: Block | None,
        now: float,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """How long new extremes may stand, and whether the model set that: Zhu 2004, Eq. (11)."""
        certain: Floats | float = np.inf
        if window is not None:
            times, block = window
            certain = certain_time(block, times, now, float(self._options.window or 0.0), epsilon)
        room = (self._sign * (rows.value - current) + epsilon) * np.exp(-caution)
        rise = model.rise_time(room, self._sign * drift, np.sqrt(variance), rows.confidence)
        rise = np.where(np.isnan(rise), 0.0, rise)
        return np.minimum(rise, certain), rise < certain

    def window(self, queries: QuerySet, weights: sparse.csr_matrix, now: float, guess: Guess | None) -> Block:
        """The instants in the window and the aggregates at each of them (queries × instants), negated for a minimum."""
        blocks = list(self._aggregates(queries, weights, now - (self._options.window or 0.0), guess))
        if len(blocks) == 1:
            return blocks[0]
        return np.concatenate([times for times, _ in blocks]), np.concatenate([block for _, block in blocks], axis=1)

    def since_landmark(self, queries: QuerySet, weights: sparse.csr_matrix, due: Ints) -> Floats:
        """The extremes of some queries since the landmark; NaN before it."""
        found = self._extreme[due]
        opened = np.full(len(due), np.nan)
        folded = self._folded[due].min() if len(due) else np.inf
        since = max(self._landmark, float(np.nextafter(folded, np.inf)))
        for times, block in self._aggregates(queries, weights, since, None):  # Zhu 2004, Eq. (12)
            final = int(np.searchsorted(times, self._final, side="right"))
            found = np.fmax(found, np.fmax.reduce(block[:, :final], axis=1, initial=np.nan))
            opened = np.fmax(opened, np.fmax.reduce(block[:, final:], axis=1, initial=np.nan))
        self._extreme[due] = found
        self._folded[due] = np.maximum(self._folded[due], self._final)
        return np.asarray(self._sign * np.fmax(found, opened), dtype=np.float64)

    def _aggregates(
        self, queries: QuerySet, weights: sparse.csr_matrix, since: float, guess: Guess | None
    ) -> Iterator[Block]:
        columns = None if self._log.fits else np.unique(weights.indices).astype(np.int64)
        if columns is not None:
            weights = weights[:, columns]
        weights = self._sign * weights
        for times, known in self._log.blocks(since, columns):
            values = known if guess is None else np.add(known, guess.moved(times, columns))
            yield times, self._weighted(weights, values, queries)

    def _weighted(self, weights: sparse.csr_matrix, values: Floats, queries: QuerySet) -> Floats:
        """The aggregate of each query at each instant (queries × instants). NaN where it has no value yet."""
        if queries.members == "all":
            return np.asarray(weights @ values.T)
        unseen = np.isnan(values)
        if not np.any(unseen):
            return np.asarray(weights @ values.T)
        sums = np.asarray(weights @ np.where(unseen, 0.0, values).T)
        members = np.asarray(pattern(weights) @ (~unseen).T.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.diff(weights.indptr)[:, None] / members if queries.members == "average" else 1.0
            return np.where(members > 0.0, sums * scale, np.nan)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The part of the state that does not belong to a query, as arrays by name."""
        return {"final": np.array([self._final]), **with_prefix("log.", self._log.snapshot())}

    def query_snapshot(self) -> dict[str, NDArray[Any]]:
        """The state of the queries; empty for windows."""
        return {} if self._options.landmark is None else {"extreme": self._extreme, "folded": self._folded}

    def resume(self, snapshot: dict[str, NDArray[Any]], now: float) -> None:
        """Continue from a snapshot. A query without a state of its own counts from the next instant on."""
        self._final = float(snapshot["final"][0])
        self._log.resume(without_prefix("log.", snapshot))
        self._folded[:] = now

    def resume_queries(self, own: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Restore the extremes of some queries."""
        if self._options.landmark is not None:
            self._extreme[into], self._folded[into] = own["extreme"], own["folded"]


class Guess:
    """How far silent streams are believed to have moved since their last row."""

    def __init__(self, drift: Floats, last_time: Floats) -> None:
        self._drift, self._last_time = drift, last_time

    def moved(self, times: Floats, columns: Ints | None) -> Floats:
        """The guessed move of some streams at some instants (instants × streams); zero for streams that run."""
        drift, last = self._drift, self._last_time
        if columns is not None:
            drift, last = drift[columns], last[columns]
        moves = np.zeros((len(times), len(drift)))
        moving = np.flatnonzero(drift)
        # Zhu 2004, §4.5: Ŝ_i(t) = S_i(t_i) + μ_i·(t − t_i)
        moves[:, moving] = drift[moving] * np.maximum(times[:, None] - last[moving], 0.0)
        return moves


def _until(blocks: Iterable[Block], final: float) -> Iterator[Block]:
    for times, values in blocks:
        end = int(np.searchsorted(times, final, side="right"))
        if end:
            yield times[:end], values[:end]


def _upper_limit(positive: sparse.csr_matrix, negative: sparse.csr_matrix, values: Floats) -> Floats:
    """What no aggregate exceeds at any instant of ``values`` (instants × streams), from the signs of its weights."""
    high, low = np.fmax.reduce(values, axis=0), np.fmin.reduce(values, axis=0)
    largest = np.maximum(np.abs(high), np.abs(low))
    return np.asarray(positive @ (high + _ROUNDING * largest) + negative @ (low - _ROUNDING * largest))
