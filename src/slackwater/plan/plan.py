"""The checked plan of a query: every decision that is made before Spark is used."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from slackwater.language import Extent, Late, Measure, Query, Window
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.sql_template import SqlTemplate
from slackwater.promises import Completeness

_MIN_WINDOWS_FOR_SEGMENTS = 120


class Path(enum.Enum):
    """What computes the windows."""

    NATIVE = "native"  # Spark's aggregation by window, with the heartbeat as watermark
    ORDERED = "ordered"  # the window operator, over sorted rows
    ROWS = "rows"  # no window: Spark runs the query on rows under the promise


class Kind(enum.Enum):
    """The kind of window."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    LANDMARK = "landmark"
    SESSION = "session"
    PER_ROW = "per row"
    TUPLES = "tuples"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of the SELECT that reads the windowed stream. Expressions are Spark SQL.

    - ``keys``: the group keys; ``key_names``: the columns that hold them.
    - ``outputs``: pairs of name and expression over ``key_names`` and the columns of the aggregates.
    - ``plain_outputs``, ``plain_having``: the same as expressions over rows, for the plain route.
    - ``hint``: ``/*+ … */`` and a space, or an empty string.
    - ``source``: ``FROM … WHERE …`` with a placeholder for the stream; ``alias``: the stream's name in it.
    - ``narrowed``: whether WHERE or a join comes between the stream and the window.
    - ``outer``: the query around this SELECT with a placeholder for its result, or None.
    """

    keys: tuple[str, ...]
    key_names: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    plain_outputs: tuple[tuple[str, str], ...]
    having: str | None
    plain_having: str | None
    hint: str
    source: SqlTemplate
    alias: str
    narrowed: bool
    outer: SqlTemplate | None

    def selecting(self, selected: str, view: str) -> str:
        """Return a SELECT of ``selected`` from the same source, with ``view`` as the stream."""
        return f"SELECT {self.hint}{selected} {self.source.fill(view)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query will be computed, and what it promises.

    ``pane``, ``panes_per_window`` and ``windows_per_row`` are set for tumbling and sliding windows only.
    ``filter_first`` are conditions of WHERE that are applied before rows are shed, as Spark SQL over the columns of
    the stream. ``sharded`` tells whether groups are distributed over several shards. ``slack_by_row`` tells whether the
    window operator holds a slack buffer and judges row by row, instead of one heartbeat per micro-batch. ``notes`` are
    remarks for ``explain``.
    """

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
    filter_first: tuple[str, ...]
    sharded: bool
    slack_by_row: bool
    notes: tuple[str, ...]

    @property
    def in_panes(self) -> bool:
        """Whether windows are merged from panes, which needs that every aggregate is mergeable."""
        panes = self.path is Path.NATIVE and self.kind is not Kind.SESSION
        return panes and all(aggregate.mergeable for aggregate in self.aggregates)

    @property
    def windows_per_segment(self) -> int:
        """How many neighbouring windows share one segment; 0 if panes are merged into windows directly.

        A pane that is in n windows is copied n times. With segments of m windows it is copied m + n/m times, which is
        smallest for m = √n. Segments need a further aggregation, which pays off only if windows overlap a lot.
        """
        if not self.in_panes or self.windows_per_row < _MIN_WINDOWS_FOR_SEGMENTS:
            return 0
        return round(math.sqrt(self.windows_per_row))

    @property
    def panes_where_read(self) -> bool:
        """Whether the ordered path gets panes that are built where rows are read, as the aggregates need no order."""
        names = [name for aggregate in self.aggregates for name, _ in aggregate.operator]
        stepwise = self.kind is Kind.LANDMARK and self.window.slide is not None
        return stepwise and "first" not in names and "last" not in names and not self.slack_by_row
