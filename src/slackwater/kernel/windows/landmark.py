"""Landmark windows: from a fixed point on, of which only the aggregates are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernel.windows.panes import PARTS
from slackwater.kernel.windows.rows import Floats, Ints, Rows

_FRESH = (0.0, 0.0, 0.0, float("nan"), float("inf"), float("-inf"))  # n, sum, squares, shift, least, most


class RunningAggregates:
    """The aggregates of each group since the landmark; rows come in order and are forgotten.

    It costs a few numbers a group and column, and a step in Python a group and batch. Squares are summed around
    each group's first value, so that they do not drown in a large offset. With ``panes`` what comes is not rows but
    panes of them.
    """

    def __init__(self, aggregates: tuple[tuple[str, int], ...], *, panes: bool = False) -> None:
        self.aggregates = aggregates
        self.panes = panes
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
        sizes = rows.values[0].astype(np.int64) if self.panes else np.ones(len(rows), dtype=np.int64)
        count = self._rows.get(key, 0) + np.cumsum(sizes)
        self._rows[key] = int(count[-1])
        columns = {column for _, column in self.aggregates if column >= 0}
        running = {column: self._run(key, column, rows) for column in columns}
        answers = []
        for name, column in self.aggregates:
            if column < 0:
                answers.append(count[last].astype(np.float64))
            else:
                answers.append(_answer(name, running[column], last))
        return answers

    def _run(self, key: int, column: int, rows: Rows) -> dict[str, Floats]:
        if self.panes:
            place = 1 + PARTS * column
            n, total, squares, least, most = rows.values[place : place + PARTS]
            with np.errstate(invalid="ignore", divide="ignore"):
                values = np.where(n > 0, total / n, np.nan)  # their means stand for them
        else:
            values = rows.values[column]
            n = (~np.isnan(values)).astype(np.float64)
            total, squares = np.where(n > 0, values, 0.0), np.zeros(len(values))
            least, most = np.where(n > 0, values, np.inf), np.where(n > 0, values, -np.inf)
        before = self._sums.setdefault(key, {}).get(column)
        if before is None:
            before = [*_FRESH, float(values[0])]
        known = values[n > 0]
        if np.isnan(before[3]) and len(known):
            before[3] = float(np.round(known[0]) if np.isfinite(known[0]) else 0.0)
        shift = before[3]
        around = total - n * shift if len(known) else np.zeros(len(n))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = squares + np.where(n > 0, around * around / n, 0.0)
        run = {
            "n": before[0] + np.cumsum(n),
            "sum": before[1] + np.cumsum(around),
            "squares": before[2] + np.cumsum(spread),
            "min": np.minimum(before[4], np.minimum.accumulate(least)),
            "max": np.maximum(before[5], np.maximum.accumulate(most)),
            "first": np.full(len(n), before[6]),
            "last": values,
            "shift": np.full(len(n), shift),
        }
        ends = [float(run[name][-1]) for name in ("n", "sum", "squares")]
        self._sums[key][column] = [*ends, shift, float(run["min"][-1]), float(run["max"][-1]), before[6]]
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
