"""One shard of standing queries: its state as bytes, one micro-batch at a time."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.kernel.standing.evaluator import WITHHELD, StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import header_of, pack, unpack
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.weights import ShardWeights, came_from
from slackwater.units import HOUR_MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Names = list[str] | NDArray[np.object_]

INSTANTS = 64
FUTURE_MS = HOUR_MS


class Shard:
    """An evaluator with names: rows by stream name in, answers by query id out, everything it knows in bytes.

    A micro-batch is a tick at the latest time in it; windows see up to ``INSTANTS`` instants of it. While no row
    comes the clock moves time on: a tick's clock, less what the clock was ahead of the rows when the last ones came.
    A row stamped more than an hour after the clock is not believed. State is some 50 bytes a query and 24·k a stream;
    all of it is given out anew in every micro-batch. Queries that changed are evaluated at once, and keep what was
    learned of them.
    """

    def __init__(self, weights: ShardWeights, options: EvaluatorOptions, number: int, state: bytes | None) -> None:
        self._options = json.dumps(asdict(options), sort_keys=True)
        self._weights = weights
        header, arrays = unpack(state) if state is not None else ({}, {})
        if header.get("options") != self._options:
            header, arrays = {}, {}  # other estimates, other answers: nothing carries over
        self._ahead_ms = float(header.get("ahead_ms", np.nan))
        self._clock_ms = float(header.get("clock_ms", np.nan))
        self._said: set[str] = set(header.get("invalid", []))
        queries, self._names = weights.over(list(header.get("streams", [])))
        self._evaluator = StandingEvaluator(queries, options, seed=number)
        if arrays:
            before = arrays.pop("marks")
            same = np.array_equal(before, weights.marks)
            self._evaluator.resume(arrays, *(() if same else came_from(weights.marks, before)))
        self._place = {name: at for at, name in enumerate(self._names)}
        self.told = ShardCounts()

    @property
    def evaluator(self) -> StandingEvaluator:
        """What evaluates."""
        return self._evaluator

    def tick(self, names: Names, times_ms: Floats, values: Floats, clock_ms: float | None = None) -> pd.DataFrame:
        """Take in a micro-batch; the answers that were due, and the queries withheld from now on.

        ``told`` says what it did, in counts.
        """
        self.told = ShardCounts(queries=self._evaluator.queries.queries)
        if clock_ms is not None:
            self._clock_ms = clock_ms
        if np.isfinite(self._clock_ms):
            times_ms = np.where(times_ms > self._clock_ms + FUTURE_MS, np.nan, times_ms)
        codes = self._codes(names)
        order = np.argsort(times_ms, kind="stable")
        codes, times_ms, values = codes[order], times_ms[order], values[order]
        now = self._now(times_ms, clock_ms)
        if not np.isfinite(now):
            return _frame(self._evaluator.queries.ids[:0], now)
        evaluator = self._evaluator
        withheld = evaluator.status == WITHHELD
        audits = evaluator.audits.copy()
        start = 0
        for end in self._instants(times_ms):
            evaluator.absorb(float(times_ms[end - 1]), codes[start:end], times_ms[start:end], values[start:end])
            start = end
        answers = evaluator.tick(now, codes[start:], times_ms[start:], values[start:])
        ids = evaluator.queries.ids
        found = _frame(
            ids[answers.query], now, answers.value, answers.drift, answers.error_bound, answers.interrupted,
            answers.next_at,
        )  # fmt: skip
        found = found[found["value"].notna()]
        judged = ~np.isnan(answers.kept)
        audited, within, asked = (evaluator.audits - audits).tolist()
        self.told = ShardCounts(
            queries=len(ids),
            withheld=int(np.count_nonzero(evaluator.status == WITHHELD)),
            evaluated=len(found),
            guessed=int(np.count_nonzero(found["interrupted_streams"])),
            judged=int(np.count_nonzero(judged)),
            hits=int(answers.kept[judged].sum()),
            expected=float(evaluator.queries.confidence[answers.query[judged]].sum()),
            audited=audited,
            within=within,
            asked=asked,
        )
        fresh = np.flatnonzero((evaluator.status == WITHHELD) & ~withheld)
        invalid = np.array([query for query in self._weights.invalid if str(query) not in self._said], dtype=object)
        self._said = {str(query) for query in self._weights.invalid}
        parts = [found]
        if len(fresh):
            parts.append(_frame(ids[fresh], now, unseen=self._unseen(fresh)))
        if len(invalid):
            parts.append(_frame(invalid.astype(ids.dtype), now))
        return found if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def _now(self, times_ms: Floats, clock_ms: float | None) -> float:
        known = times_ms[np.isfinite(times_ms)]
        now = self._evaluator.now
        if len(known):
            now = max(now, float(known[-1]))
            if np.isfinite(self._clock_ms):
                self._ahead_ms = self._clock_ms - now
        elif clock_ms is not None and np.isfinite(self._ahead_ms):
            now = max(now, clock_ms - self._ahead_ms)
        return now

    def _instants(self, times_ms: Floats) -> list[int]:
        """Where to cut a micro-batch that brings several ticks, if a window must see them."""
        if self._evaluator.options.aggregate == "linear":
            return []
        known = times_ms[np.isfinite(times_ms)]
        ends = np.flatnonzero(np.diff(known) > 0.0) + 1
        if len(ends) > INSTANTS:
            ends = ends[np.linspace(0, len(ends) - 1, INSTANTS).astype(np.int64)]
        return [int(end) for end in ends]

    def _codes(self, names: Names) -> Ints:
        numbers, found = pd.factorize(np.array(names, dtype=object))
        for name in found:
            if name not in self._place:
                self._place[name] = len(self._names)
                self._names.append(name)
        self._evaluator.grow(len(self._names))
        place = np.array([self._place[name] for name in found], dtype=np.int64)
        return place[numbers] if len(place) else np.zeros(0, dtype=np.int64)

    def _unseen(self, rows: Ints) -> Ints:
        pattern = self._evaluator.queries.weights[rows]
        pattern.data[:] = 1.0
        return np.asarray(pattern @ (~self._evaluator.estimator.seen).astype(np.float64)).astype(np.int64)

    def state(self) -> bytes:
        """Everything needed to go on."""
        header: dict[str, Any] = {
            "options": self._options,
            "streams": self._names,
            "ahead_ms": self._ahead_ms,
            "clock_ms": self._clock_ms,
            "invalid": sorted(self._said),
        }
        return pack(header, {"marks": self._weights.marks, **self._evaluator.snapshot()})


def known_streams(state: bytes | None) -> list[str]:
    """The streams that a state knows of."""
    return [] if state is None else list(header_of(state)["streams"])


def _frame(
    ids: NDArray[Any],
    at: float,
    value: Floats | None = None,
    drift: Floats | None = None,
    error_bound: Floats | None = None,
    unseen: Ints | None = None,
    next_at: Floats | None = None,
) -> pd.DataFrame:
    nothing = np.full(len(ids), np.nan)
    return pd.DataFrame(
        {
            "query": ids,
            "at": np.full(len(ids), at),
            "value": nothing if value is None else value,
            "drift": nothing if drift is None else drift,
            "error_bound": nothing if error_bound is None else error_bound,
            "interrupted_streams": np.zeros(len(ids), dtype=np.int64) if unseen is None else unseen,
            "next_evaluation_at": nothing if next_at is None else next_at,
        }
    )
