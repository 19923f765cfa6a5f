"""Semantic shedding: which rows to shed, least useful first, so that a shed ratio is met.

Utilities fall into cells, and a histogram counts the rows of each cell. Rows above a threshold cell are all kept. Of
those below it a small sample is kept, and of the threshold cell itself as many as meet the ratio. No stratum is shed
completely, so every row has a known chance to be kept, and weights of 1/chance leave sums and counts unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.control.shedding.microbatch import MOST_SHED

_SAMPLED = 0.1
"""The share of the kept rows, at most, that is a sample of the least useful ones."""

CELLS_PER_E = 64
"""Cells per factor e of utility: a cell is 1.6 % wide."""
SMALLEST = 1e-6
LARGEST = 1e12
"""Utilities nearer to 0 or further from it are not told apart."""
HIGHEST_CELL = math.floor(CELLS_PER_E * math.log1p(LARGEST / SMALLEST))
UNKNOWN_CELL = -HIGHEST_CELL - 1
"""The cell of rows whose utility is null or not a number; they are the least useful."""
CELLS = 2 * HIGHEST_CELL + 2

_DECAY = 0.5
"""Weight of the earlier batches beside the newest."""


def utility_of(cell: int) -> float:
    """The utility in a cell that is nearest to 0; minus infinity for rows without one.

    >>> utility_of(0), utility_of(UNKNOWN_CELL)
    (0.0, -inf)
    >>> round(utility_of(884), 2), round(utility_of(-884), 2)
    (1.0, -1.0)
    """
    if cell == UNKNOWN_CELL:
        return -math.inf
    return math.copysign(SMALLEST * math.expm1(abs(cell) / CELLS_PER_E), cell)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rows above ``cell`` are kept, rows in it with probability ``keep_ratio``, rows below it with ``least_ratio``."""

    cell: int
    keep_ratio: float
    least_ratio: float


KEEP_ALL = Threshold(UNKNOWN_CELL, 1.0, 1.0)


def least_ratio(shed_ratio: float) -> float:
    """The share of the least useful rows to keep: a tenth of the share of all rows that is kept, at least 1 %.

    >>> round(least_ratio(0.6), 3), round(least_ratio(0.99), 3)
    (0.04, 0.01)
    """
    return max(_SAMPLED * (1.0 - shed_ratio), 1.0 - MOST_SHED)


class UtilityHistogram:
    """Counts rows by the cell of their utility; earlier batches count half as much with each batch."""

    def __init__(self) -> None:
        self._rows: dict[int, float] = {}

    def observe(self, counted: Iterable[tuple[int, int]]) -> None:
        """Learn from the (cell, rows) pairs of a batch."""
        faded = {cell: _DECAY * rows for cell, rows in self._rows.items() if rows > 1e-3}
        for cell, rows in counted:
            faded[cell] = faded.get(cell, 0.0) + rows
        self._rows = faded

    def threshold(self, shed_ratio: float) -> Threshold:
        """The threshold that sheds this share of rows like those counted.

        >>> histogram = UtilityHistogram()
        >>> histogram.observe([(1, 50), (2, 30), (3, 20)])
        >>> histogram.threshold(0.6)
        Threshold(cell=2, keep_ratio=0.6..., least_ratio=0.04...)
        """
        total = sum(self._rows.values())
        if shed_ratio <= 0.0 or not total:
            return KEEP_ALL
        # rows that may be kept beyond the least share of every cell, handed out from the most useful cell down
        least = least_ratio(shed_ratio)
        spare = max(1.0 - shed_ratio - least, 0.0) * total
        for cell in sorted(self._rows, reverse=True):
            rows = self._rows[cell]
            if spare < (1.0 - least) * rows:
                return Threshold(cell, least + spare / rows, least)
            spare -= (1.0 - least) * rows
        return KEEP_ALL
