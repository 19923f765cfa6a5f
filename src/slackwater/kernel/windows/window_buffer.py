"""The window buffer of Kim 2010, Fig. 2: the rows that coming windows may still contain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.order import append_by_group, by_group, in_order
from slackwater.kernel.windows.rows import Ints, Rows


class WindowBuffer:
    """Rows that the heartbeat has passed, sorted by the attribute; ``grouped``, by group and then by the attribute.

    ``fresh`` marks the rows of the last ``append``.

    # differs: the slack buffer of the paper's record store is not here. Rows wait in packed form (``WaitingRows``).
    """

    def __init__(self, columns: int, *, grouped: bool = False) -> None:
        self.columns = columns
        self.grouped = grouped
        self.rows = Rows.empty(columns)
        self.fresh: NDArray[np.bool_] = np.zeros(0, dtype=bool)

    def append(self, rows: Rows) -> Rows:
        """Sort rows and append them; returns them sorted. None may be older than a row appended before."""
        if self.grouped:
            added, _ = by_group(rows)
            self.rows, self.fresh = append_by_group(self.rows, added)
        else:
            added, old = in_order(rows), len(self.rows)
            self.rows = Rows.concat([self.rows, added], self.columns)
            self.fresh = np.arange(len(self.rows)) >= old
        return added

    def retain(self, index: slice | Ints | NDArray[np.bool_]) -> None:
        """Keep only the rows at ``index``."""
        self.rows = self.rows.take(index)
