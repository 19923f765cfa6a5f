"""Panes: partial aggregates of rows per group and step, enough for a landmark window with SLIDE."""

from __future__ import annotations

import numpy as np

from slackwater.kernel.windows.rows import Floats, Ints, Rows

PARTS = 5  # per value column: count of known values, sum, squares around the mean, minimum, maximum
MERGEABLE = frozenset(
    ("count", "sum", "avg", "min", "max", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
)  # FIRST and LAST cannot be merged: a pane does not know the order of its rows


def pane_columns(columns: int) -> int:
    """The number of value columns in panes of rows with ``columns`` value columns."""
    return 1 + PARTS * columns


def to_panes(rows: Rows, origin: int, slide: int) -> Rows:
    """Aggregate the rows by group and by step of ``slide``, counted from ``origin``. Rows below it are left out.

    A pane's attribute is the last instant of its step. Its values are its number of rows, then ``PARTS`` values per
    column. The cost is one sort of the rows by group and step.

    >>> panes = to_panes(Rows.of([0, 4, 7], values=([1.0, 3.0, 5.0],)), 0, 5)
    >>> panes.attribute.tolist(), [column.tolist() for column in panes.values]
    ([4, 9], [[2.0, 1.0], [2.0, 1.0], [4.0, 5.0], [2.0, 0.0], [1.0, 5.0], [3.0, 5.0]])
    """
    if len(rows) and int(rows.attribute.min()) < origin:
        rows = rows.take(rows.attribute >= origin)
    step = (rows.attribute - origin) // slide
    order = np.lexsort((step, rows.keys))
    keys, step = rows.keys[order], step[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (step[1:] != step[:-1])
    begins = np.flatnonzero(new)
    sizes = np.diff(begins, append=len(order))
    values = [sizes.astype(np.float64)]
    for column in rows.values:
        values += _parts(column[order], begins, sizes)
    return Rows(origin + (step[begins] + 1) * slide - 1, keys[begins], tuple(values))


def _parts(column: Floats, begins: Ints, sizes: Ints) -> list[Floats]:
    if not len(begins):
        return [np.zeros(0) for _ in range(PARTS)]
    known = ~np.isnan(column)
    count = np.add.reduceat(known.astype(np.float64), begins)
    total = np.add.reduceat(np.where(known, column, 0.0), begins)
    with np.errstate(invalid="ignore", divide="ignore"):
        around = np.where(known, column - np.repeat(total / count, sizes), 0.0)
    return [
        count,
        total,
        np.add.reduceat(around * around, begins),
        np.minimum.reduceat(np.where(known, column, np.inf), begins),
        np.maximum.reduceat(np.where(known, column, -np.inf), begins),
    ]
