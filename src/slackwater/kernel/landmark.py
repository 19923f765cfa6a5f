"""Landmark windows: from a fixed point on, of which only the aggregates are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernel.rows import Floats, Ints, Rows

_FRESH = [0.0, 0.0, 0.0, 0.0, float("inf"), float("-inf"), 0.0]  # n, sum, squares, shift, least, most, first


class RunningAggregates:
    """The aggregates of each group since the landmark; rows come in order and are forgotten.

    It costs a few numbers a group and column, and a step in Python a group and batch. Squares are summed around
    each group's first value, so that they do not drown in a large offset.
    """

    def __init__(self, aggregates: tuple[tuple[str, int], ...]) -> None:
        self.aggregates = aggregates
        self._rows: dict[int, int] = {}
        self._sums: dict[int, dict[int, list[float]]] = {}

    def add(self, rows: Rows, ends: Ints) -> tuple[Ints, Ints, tuple[Floats, ...]]:
        """Take rows in order, each with the end of its step; give (end, group, aggregates) of every step, in order.

        A step holds the rows of one group with the same end; its aggregates are those after its last row.
        """
        if not len(rows):
            return np.zeros(0, np.int64), np.zeros(0, np.int64), tuple(np.zeros(0) for _ in self.aggregates)
        order = np.argsort(rows.keys, kind="stable")
        keys, starts = np.unique(rows.keys[order], return_index=True)
        found_ends, found_keys, found = [], [], []
        for key, index in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
            mine = ends[index]
            last = np.flatnonzero(np.append(mine[1:] != mine[:-1], True))
            found_ends.append(mine[last])
            found_keys.append(np.full(len(last), key))
            found.append(self._after(int(key), rows.take(index), last))
        end, group = np.concatenate(found_ends), np.concatenate(found_keys)
        place = np.lexsort((group, end))
        columns = [np.concatenate([part[i] for part in found])[place] for i in range(len(self.aggregates))]
        return end[place], group[place], tuple(columns)

    def _after(self, key: int, rows: Rows, last: Ints) -> list[Floats]:
        count = self._rows.get(key, 0)
        self._rows[key] = count + len(rows)
        columns = {column for _, column in self.aggregates if column >= 0}
        running = {column: self._run(key, column, rows.values[column]) for column in columns}
        answers = []
        for name, column in self.aggregates:
            if column < 0:
                answers.append((count + last + 1).astype(np.float64))
            else:
                answers.append(_answer(name, running[column], last))
        return answers

    def _run(self, key: int, column: int, values: Floats) -> dict[str, Floats]:
        known = np.flatnonzero(~np.isnan(values))
        before = self._sums.setdefault(key, {}).get(column)
        if before is None:
            before = list(_FRESH)
            before[3] = float(values[known[0]]) if len(known) else float("nan")
            before[6] = float(values[0])
        elif np.isnan(before[3]) and len(known):
            before[3] = float(values[known[0]])
        n, total, squares, shift, least, most, first = before
        valid = ~np.isnan(values)
        around = np.where(valid, values - shift, 0.0) if len(known) else np.zeros(len(values))
        run = {
            "n": n + np.cumsum(valid),
            "sum": total + np.cumsum(around),
            "squares": squares + np.cumsum(around * around),
            "min": np.minimum(least, np.minimum.accumulate(np.where(valid, values, np.inf))),
            "max": np.maximum(most, np.maximum.accumulate(np.where(valid, values, -np.inf))),
            "first": np.full(len(values), first),
            "last": values,
            "shift": np.full(len(values), shift),
        }
        ends = [float(run[name][-1]) for name in ("n", "sum", "squares")]
        self._sums[key][column] = [*ends, shift, float(run["min"][-1]), float(run["max"][-1]), first]
        return run

    def snapshot(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {"rows": list(self._rows.items()), "sums": [[k, list(c.items())] for k, c in self._sums.items()]}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._rows = {int(key): int(count) for key, count in snapshot["rows"]}
        self._sums = {int(key): {int(c): list(v) for c, v in columns} for key, columns in snapshot["sums"]}


def _answer(name: str, run: dict[str, Floats], at: Ints) -> Floats:
    n = run["n"][at]
    if name in ("first", "last"):
        return run[name][at]
    if name == "count":
        return n.astype(np.float64)
    if name in ("min", "max"):
        return np.where(n > 0, run[name][at], np.nan)
    total, squares, shift = run["sum"][at], run["squares"][at], run["shift"][at]
    with np.errstate(invalid="ignore", divide="ignore"):
        if name == "sum":
            return np.where(n > 0, total + shift * n, np.nan)
        if name == "avg":
            return total / n + shift
        sample = name.endswith("_samp")
        spread = np.maximum(squares - total * total / n, 0.0) / (n - sample)
        answer = np.where(n > sample, spread, np.nan)
        return np.sqrt(answer) if name.startswith("stddev") else answer
