"""A checked plan: everything that is decided before Spark is touched."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from slackwater.language import Extent, Late, Measure, Query, Window
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.slotted import Slotted
from slackwater.promises import Completeness

_MANY_WINDOWS = 120


class Path(enum.Enum):
    """Who computes the windows."""

    NATIVE = "native"  # Spark's own aggregation, by window id, under the heartbeat
    ORDERED = "ordered"  # the window operator, over rows in order
    ROWS = "rows"  # no window: the promise alone, and Spark as ever


class Kind(enum.Enum):
    """The kind of window."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    LANDMARK = "landmark"
    PER_ROW = "per row"
    TUPLES = "tuples"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Shape:
    """The SELECT around the windowed stream, taken apart; expressions are Spark SQL.

    ``outputs`` are (name, expression over keys and aggregates, each a column of its own); ``plain_outputs`` the same
    with the aggregates computed from rows at once.
    ``key_names`` are the columns that carry the group keys.
    """

    keys: tuple[str, ...]
    key_names: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    plain_outputs: tuple[tuple[str, str], ...]
    having: str | None
    plain_having: str | None
    hint: str  # "/*+ … */ ", or nothing
    source: Slotted  # "FROM … WHERE …", with a place for the stream
    alias: str
    narrowed: bool  # whether WHERE or a join stands between the stream and the window
    outer: Slotted | None  # the query around this SELECT, with a place for its result; None if there is none

    def selecting(self, selected: str, view: str) -> str:
        """A SELECT of something else from the same rows, which are those of ``view``."""
        return f"SELECT {self.hint}{selected} {self.source.filled(view)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done for a query, and what it promises."""

    query: Query
    stream: str
    window: Window
    attribute: str | None
    measure: Measure | None
    kind: Kind
    path: Path
    pane: Extent | None
    panes_per_window: int
    windows_per_row: float
    aggregates: tuple[Aggregate, ...]
    shape: Shape | None
    promise: Completeness
    method: str
    method_options: dict[str, int]
    late: Late
    sharded: bool
    notes: tuple[str, ...]

    @property
    def in_panes(self) -> bool:
        """Whether overlapping windows share panes: every aggregate can be merged."""
        return self.path is Path.NATIVE and all(aggregate.mergeable for aggregate in self.aggregates)

    @property
    def windows_per_segment(self) -> int:
        """How many windows are put in a block, whose panes are put together first; 0 if panes go into windows at once.

        With m windows a block, a pane goes into m + n/m segments instead of n windows: least at the root of n. Below
        some overlap the aggregation that it takes costs more than it spares.
        """
        return round(math.sqrt(self.windows_per_row)) if self.in_panes and self.windows_per_row >= _MANY_WINDOWS else 0

    @property
    def panes_where_read(self) -> bool:
        """Whether the ordered path takes panes that are made where rows are read: only what needs no order."""
        names = [name for aggregate in self.aggregates for name, _ in aggregate.operator]
        stepwise = self.kind is Kind.LANDMARK and self.window.slide is not None and not self.method_options
        return stepwise and "first" not in names and "last" not in names
