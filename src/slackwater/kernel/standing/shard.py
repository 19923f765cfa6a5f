"""One shard of standing queries: one micro-batch in, answers out, and its whole state as bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slackwater.kernel.standing.answers import Answers
from slackwater.kernel.standing.evaluation_cost import EvaluationCost
from slackwater.kernel.standing.evaluator import WITHHELD, StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.packing import pack, read_header, unpack
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.tick_budget import Processor, TickBudget
from slackwater.kernel.standing.weights import ShardWeights, match_queries
from slackwater.units import HOUR_MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Names = list[str] | NDArray[np.object_]  # None for a row without a stream

FUTURE_MS = HOUR_MS
"""A row stamped more than this after the clock is invalid."""


class Shard:
    """An evaluator that knows streams and queries by name.

    A micro-batch is one tick, at the latest time of its rows; windows and landmarks see every instant in it. While no
    row comes, the clock moves time on: the time is the clock minus its lead over the rows when the last ones came. The
    state takes about 60 bytes per query and 24·k bytes per stream, and 20 bytes per row in a window; all of it is
    returned in every micro-batch. A query whose weights or promise changed is evaluated at once; its calibration
    continues.

    :param number: the shard's number, which also seeds its random audits.
    :param state: what ``state()`` returned after the previous micro-batch. A state with other options is ignored.
    :param processor: limits the processor time of evaluations while the stream is live; None means no limit. Its
        measurements take effect from the next micro-batch on, if ``learn_cost`` is called.
    """

    def __init__(
        self,
        weights: ShardWeights,
        options: EvaluatorOptions,
        number: int,
        state: bytes | None,
        processor: Processor | None = None,
    ) -> None:
        self._options = json.dumps(asdict(options), sort_keys=True)
        self._weights = weights
        header, arrays = unpack(state) if state is not None else ({}, {})
        rows = header.get("rows", [0, 0, 0])  # used, out of order, invalid
        if header.get("options") != self._options:
            header, arrays = {}, {}
        self._clock_lead_ms = float(header.get("clock_lead_ms", np.nan))
        self._clock_ms = float(header.get("clock_ms", np.nan))
        self._rows: list[int] = list(rows)
        self._reported_invalid: set[str] = set(header.get("invalid", []))
        queries, self._names = weights.over(list(header.get("streams", [])))
        self._budget = None if processor is None else TickBudget(processor.share, header.get("pace", []))
        cost = EvaluationCost(None if processor is None else processor.clock_ms)
        self._evaluator = StandingEvaluator(queries, options, seed=number, cost=cost)
        if arrays:
            before = arrays.pop("fingerprints")
            same = np.array_equal(before, weights.fingerprints)
            self._evaluator.resume(arrays, *(() if same else match_queries(weights.fingerprints, before)))
        self._stream_index = {name: at for at, name in enumerate(self._names)}
        self.counts = ShardCounts()

    @property
    def evaluator(self) -> StandingEvaluator:
        """The evaluator of this shard."""
        return self._evaluator

    @property
    def tested(self) -> dict[str, float]:
        """The streams that were tested in this micro-batch, and the Shapiro–Wilk p-values of their increments."""
        estimates = self._evaluator.stream_estimates
        return {self._names[stream]: float(estimates.normality.p_values[stream]) for stream in estimates.tested}

    def tick(
        self,
        names: Names,
        times_ms: Floats,
        values: Floats,
        clock_ms: float | None = None,
        known_until_ms: float | None = None,
    ) -> pd.DataFrame:
        """Take in a micro-batch and return the answers that were due, and a row for each newly withheld query.

        A row without a name is invalid. ``counts`` then describes this micro-batch.

        :param known_until_ms: the time up to which no further row can come. It then moves time on while no row comes,
            instead of the clock.
        """
        evaluator, size = self._evaluator, len(names)
        named = np.flatnonzero(pd.notna(np.array(names, dtype=object)))
        if len(named) < size:
            names, times_ms, values = np.array(names, dtype=object)[named], times_ms[named], values[named]
        if clock_ms is not None:
            self._clock_ms = clock_ms
        if np.isfinite(self._clock_ms):
            times_ms = np.where(times_ms > self._clock_ms + FUTURE_MS, np.nan, times_ms)
        streams = self._stream_numbers(names)
        order = np.argsort(times_ms, kind="stable")
        streams, times_ms, values = streams[order], times_ms[order], values[order]
        now = self._now(times_ms, clock_ms, known_until_ms)
        if not np.isfinite(now):
            self.counts = replace(self._count_rows(0, 0, size), queries=evaluator.queries.queries)
            return _frame(evaluator.queries.ids[:0], now)
        withheld_before = evaluator.status == WITHHELD
        audits_before, intake_before = evaluator.audits.copy(), replace(evaluator.estimator.intake)
        budget_ms = float("inf")
        if self._budget is not None:
            if clock_ms is not None:
                self._budget.observe(clock_ms, now)
            budget_ms = self._budget.ms(evaluator.stream_estimates.period)
        answers = evaluator.tick(now, streams, times_ms, values, budget_ms)
        found = _answer_frame(evaluator.queries.ids, answers)
        used, out_of_order = evaluator.estimator.intake.since(intake_before)
        rows = self._count_rows(used, out_of_order, size - used - out_of_order)
        self.counts = self._count(rows, found, answers, evaluator.audits - audits_before)
        return self._with_unanswered(found, withheld_before, now)

    def _count_rows(self, used: int, out_of_order: int, invalid: int) -> ShardCounts:
        self._rows = [before + new for before, new in zip(self._rows, (used, out_of_order, invalid), strict=True)]
        every = dict(zip(("all_used", "all_out_of_order", "all_invalid"), self._rows, strict=True))
        return ShardCounts(used=used, out_of_order=out_of_order, invalid=invalid, **every)

    def _count(self, rows: ShardCounts, found: pd.DataFrame, answers: Answers, audits: Floats) -> ShardCounts:
        evaluator = self._evaluator
        judged = ~np.isnan(answers.kept)
        audited, within, asked, number = audits.tolist()
        waiting_judged, waiting_hits, waiting_expected = evaluator.waiting_judged.tolist()
        return replace(
            rows,
            queries=evaluator.queries.queries,
            withheld=len(evaluator.withheld),
            evaluated=len(found),
            guessed=int(np.count_nonzero(found["interrupted_streams"])),
            judged=int(np.count_nonzero(judged) + waiting_judged),
            hits=int(answers.kept[judged].sum() + waiting_hits),
            expected=float(evaluator.queries.confidence[answers.query[judged]].sum() + waiting_expected),
            audited=audited,
            within=within,
            asked=asked,
            audits=int(number),
            missed=evaluator.schedule.missed,
            penalty=evaluator.schedule.penalty,
            overdue=evaluator.schedule.overdue,
            postponed=evaluator.schedule.postponed,
        )

    def learn_cost(self, delivery_ms: float) -> None:
        """Learn what the evaluations of this micro-batch cost; ``delivery_ms`` is what their answers cost later on."""
        self.counts = replace(self.counts, evaluation_ms=self._evaluator.cost.learn(delivery_ms))

    def _with_unanswered(self, found: pd.DataFrame, withheld_before: NDArray[np.bool_], now: float) -> pd.DataFrame:
        """The answers, and one row without a value for each query newly withheld or newly invalid."""
        ids = self._evaluator.queries.ids
        withheld = np.flatnonzero((self._evaluator.status == WITHHELD) & ~withheld_before)
        invalid = [query for query in self._weights.invalid if str(query) not in self._reported_invalid]
        self._reported_invalid = {str(query) for query in self._weights.invalid}
        parts = [found]
        if len(withheld):
            parts.append(_frame(ids[withheld], now, interrupted=self._unseen_streams(withheld)))
        if invalid:
            parts.append(_frame(np.array(invalid, dtype=object).astype(ids.dtype), now))
        return found if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def _now(self, times_ms: Floats, clock_ms: float | None, known_until_ms: float | None) -> float:
        known = times_ms[np.isfinite(times_ms)]
        now = self._evaluator.now
        if len(known):
            now = max(now, float(known[-1]))
            if np.isfinite(self._clock_ms):
                self._clock_lead_ms = self._clock_ms - now
        elif known_until_ms is not None:
            now = max(now, known_until_ms) if np.isfinite(now) else now
        elif clock_ms is not None and np.isfinite(self._clock_lead_ms):
            now = max(now, clock_ms - self._clock_lead_ms)
        return now

    def _stream_numbers(self, names: Names) -> Ints:
        """The number of each row's stream. New streams get the next numbers."""
        codes, distinct = pd.factorize(np.array(names, dtype=object))
        for name in distinct:
            if name not in self._stream_index:
                self._stream_index[name] = len(self._names)
                self._names.append(name)
        self._evaluator.grow(len(self._names))
        numbers = np.array([self._stream_index[name] for name in distinct], dtype=np.int64)
        return numbers[codes] if len(numbers) else np.zeros(0, dtype=np.int64)

    def _unseen_streams(self, queries: Ints) -> Ints:
        """How many streams of each query never had a row."""
        pattern = self._evaluator.queries.weights[queries]
        pattern.data[:] = 1.0
        return np.asarray(pattern @ (~self._evaluator.estimator.seen).astype(np.float64)).astype(np.int64)

    def state(self) -> bytes:
        """Everything that the next micro-batch needs."""
        header: dict[str, Any] = {
            "options": self._options,
            "streams": self._names,
            "clock_lead_ms": self._clock_lead_ms,
            "clock_ms": self._clock_ms,
            "invalid": sorted(self._reported_invalid),
            "rows": self._rows,
            "pace": [] if self._budget is None else self._budget.seen,
        }
        return pack(header, {"fingerprints": self._weights.fingerprints, **self._evaluator.snapshot()})


def known_streams(state: bytes | None) -> list[str]:
    """The streams named in a state."""
    return [] if state is None else list(read_header(state)["streams"])


def _answer_frame(ids: NDArray[Any], answers: Answers) -> pd.DataFrame:
    """The answers as rows. An extreme since a landmark in the future has no value and no row."""
    found = _frame(
        ids[answers.query],
        answers.at,
        answers.value,
        answers.drift,
        answers.error_bound,
        answers.interrupted,
        answers.next_at,
    )
    return found[found["value"].notna()]


def _frame(
    ids: NDArray[Any],
    at: float | Floats,
    value: Floats | None = None,
    drift: Floats | None = None,
    error_bound: Floats | None = None,
    interrupted: Ints | None = None,
    next_at: Floats | None = None,
) -> pd.DataFrame:
    missing = np.full(len(ids), np.nan)
    return pd.DataFrame(
        {
            "query": ids,
            "at": np.broadcast_to(np.asarray(at), len(ids)).copy(),
            "value": missing if value is None else value,
            "drift": missing if drift is None else drift,
            "error_bound": missing if error_bound is None else error_bound,
            "interrupted_streams": np.zeros(len(ids), dtype=np.int64) if interrupted is None else interrupted,
            "next_evaluation_at": missing if next_at is None else next_at,
        }
    )
