"""Landmark windows: from a fixed point to now. Only running aggregates are kept, no rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernel.windows.panes import PARTS
from slackwater.kernel.windows.rows import Floats, Ints, Rows


class Steps(NamedTuple):
    """Aggregates per step and group, sorted by the end of the step."""

    ends: Ints
    keys: Ints
    aggregates: tuple[Floats, ...]


@dataclass(slots=True)
class _Total:
    """The aggregate state of one group and one value column. Sums are around ``shift``, the first known value."""

    first: float
    count: float = 0.0
    sum: float = 0.0
    squares: float = 0.0
    shift: float = float("nan")
    least: float = float("inf")
    most: float = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One value column of some rows, or of some panes: five parts, and a value that stands for the row or pane."""

    count: Floats
    sum: Floats
    squares: Floats
    least: Floats
    most: Floats
    values: Floats

    @classmethod
    def of_rows(cls, values: Floats) -> _Column:
        known = ~np.isnan(values)
        least, most = np.where(known, values, np.inf), np.where(known, values, -np.inf)
        return cls(known.astype(np.float64), np.where(known, values, 0.0), np.zeros(len(values)), least, most, values)

    @classmethod
    def of_panes(cls, panes: Rows, column: int) -> _Column:
        start = 1 + PARTS * column
        count, total, squares, least, most = panes.values[start : start + PARTS]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(count > 0, total / count, np.nan)
        return cls(count, total, squares, least, most, means)


class RunningAggregates:
    """The aggregates of each group since the landmark. Rows come in order and are not kept.

    It stores a few numbers per group and column, and runs one Python step per group and batch. Squares are summed
    around each group's first value, which keeps precision where values have a large offset. With ``panes`` it takes
    panes (``to_panes``) instead of rows.
    """

    def __init__(self, aggregates: tuple[tuple[str, int], ...], *, panes: bool = False) -> None:
        self.aggregates = aggregates
        self.panes = panes
        self._rows: dict[int, int] = {}
        self._totals: dict[int, dict[int, _Total]] = {}

    def add(self, rows: Rows, ends: Ints) -> Steps:
        """Add rows in order, each with the end of its step; returns the aggregates at the end of every step.

        A step holds the rows of one group with the same end.
        """
        if not len(rows):
            return Steps(np.zeros(0, np.int64), np.zeros(0, np.int64), tuple(np.zeros(0) for _ in self.aggregates))
        order = np.argsort(rows.keys, kind="stable")
        keys, starts = np.unique(rows.keys[order], return_index=True)
        step_ends, step_keys, answers = [], [], []
        for key, index in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
            group_ends = ends[index]
            last = np.flatnonzero(np.append(group_ends[1:] != group_ends[:-1], True))
            step_ends.append(group_ends[last])
            step_keys.append(np.full(len(last), key))
            answers.append(self._add_group(int(key), rows.take(index), last))
        all_ends, all_keys = np.concatenate(step_ends), np.concatenate(step_keys)
        by_end = np.lexsort((all_keys, all_ends))
        columns = [np.concatenate([part[i] for part in answers])[by_end] for i in range(len(self.aggregates))]
        return Steps(all_ends[by_end], all_keys[by_end], tuple(columns))

    def _add_group(self, key: int, rows: Rows, last: Ints) -> list[Floats]:
        """Add the rows of one group; returns each aggregate after the rows at ``last``."""
        sizes = rows.values[0].astype(np.int64) if self.panes else np.ones(len(rows), dtype=np.int64)
        count = self._rows.get(key, 0) + np.cumsum(sizes)
        self._rows[key] = int(count[-1])
        columns = {column for _, column in self.aggregates if column >= 0}
        running = {column: self._add_column(key, column, rows) for column in columns}
        return [
            count[last].astype(np.float64) if column < 0 else _answer(name, running[column], last)
            for name, column in self.aggregates
        ]

    def _add_column(self, key: int, column: int, rows: Rows) -> dict[str, Floats]:
        """Add one value column of a group; returns its running totals after every row."""
        added = _Column.of_panes(rows, column) if self.panes else _Column.of_rows(rows.values[column])
        total = self._totals.setdefault(key, {}).get(column)
        if total is None:
            total = self._totals[key][column] = _Total(first=float(added.values[0]))
        known = added.values[added.count > 0]
        if np.isnan(total.shift) and len(known):
            total.shift = float(np.round(known[0]) if np.isfinite(known[0]) else 0.0)
        around = added.sum - added.count * total.shift if len(known) else np.zeros(len(added.count))
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = added.squares + np.where(added.count > 0, around * around / added.count, 0.0)
        running = {
            "n": total.count + np.cumsum(added.count),
            "sum": total.sum + np.cumsum(around),
            "squares": total.squares + np.cumsum(squares),
            "min": np.minimum(total.least, np.minimum.accumulate(added.least)),
            "max": np.maximum(total.most, np.maximum.accumulate(added.most)),
            "first": np.full(len(added.values), total.first),
            "last": added.values,
            "shift": np.full(len(added.values), total.shift),
        }
        total.count, total.sum, total.squares = (float(running[name][-1]) for name in ("n", "sum", "squares"))
        total.least, total.most = float(running["min"][-1]), float(running["max"][-1])
        return running

    def snapshot(self) -> dict[str, Any]:
        """The whole state, for JSON."""
        totals = [
            [key, [[column, dataclasses.asdict(total)] for column, total in columns.items()]]
            for key, columns in self._totals.items()
        ]
        return {"rows": list(self._rows.items()), "totals": totals}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._rows = {int(key): int(count) for key, count in snapshot["rows"]}
        self._totals = {
            int(key): {int(column): _Total(**total) for column, total in columns} for key, columns in snapshot["totals"]
        }


def _answer(name: str, running: dict[str, Floats], at: Ints) -> Floats:
    """The aggregate ``name`` from its running totals, after the rows ``at``."""
    n = running["n"][at]
    if name in ("first", "last"):
        return running[name][at]
    if name == "count":
        return n.astype(np.float64)
    if name in ("min", "max"):
        return np.where(n > 0, running[name][at], np.nan)
    total, squares, shift = running["sum"][at], running["squares"][at], running["shift"][at]
    with np.errstate(invalid="ignore", divide="ignore"):
        if name == "sum":
            return np.where(n > 0, total + shift * n, np.nan)
        if name == "avg":
            return total / n + shift
        sample = name.endswith("_samp")
        variance = np.maximum(squares - total * total / n, 0.0) / (n - sample)
        answer = np.where(n > sample, variance, np.nan)
        return np.sqrt(answer) if name.startswith("stddev") else answer
