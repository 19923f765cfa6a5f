"""What a query says, as values: nothing here knows text positions apart from the places kept for errors."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp


class Measure(enum.Enum):
    """What an extent is counted in."""

    TIME = "time"
    TUPLES = "tuples"
    NUMBER = "number"


class Late(enum.Enum):
    """What becomes of late rows (``LATE …``)."""

    COUNT = "count"
    PANES = "panes"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Extent:
    """A length on the windowing attribute: milliseconds, a number of tuples, or a plain number.

    >>> Extent(300_000.0, Measure.TIME)
    Extent(amount=300000.0, measure=<Measure.TIME: 'time'>)
    """

    amount: float
    measure: Measure


@dataclass(frozen=True, slots=True)
class Window:
    """A bracket clause. ``places`` (keyword → start and length in the text) takes no part in equality."""

    range: Extent | None = None
    slide: Extent | None = None
    landmark: str | float | None = None
    attribute: str | None = None
    per: tuple[str, ...] = ()
    slack: Extent | None = None
    drop_ratio: float | None = None
    delay_ms: float | None = None
    arrival: str | None = None
    sources: tuple[str, ...] = ()
    heartbeat: str | None = None
    late: Late | None = None
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def by_punctuations(self) -> bool:
        """Whether ``SLACK 0`` stands beside ``DRATIO``: punctuations are asked for, and nothing is capped.

        Kim 2007, Section 4. Alone, ``SLACK 0`` is a fixed buffer of nothing.
        """
        return self.slack is not None and self.slack.amount == 0 and self.drop_ratio is not None


@dataclass(frozen=True, slots=True)
class Precision:
    """``WITHIN x|x% CONFIDENCE y%``: an error bound, absolute or relative, and a confidence."""

    bound: float
    relative: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query: the tree that sqlglot made of it, the window of each stream by position, and what follows it.

    ``windows`` holds, for each windowed table in the order of the text, its index among all tables of the
    tree and its window. ``text`` is where it came from, from the character ``start`` on; both take no part in equality.
    """

    select: exp.Query
    windows: tuple[tuple[int, Window], ...]
    precision: Precision | None = None
    with_error: bool = False
    text: str = field(default="", compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)

    def tables(self) -> list[exp.Table]:
        """Every table that the query reads, in the order of the tree."""
        return tables_of(self.select)

    def windowed(self) -> list[tuple[exp.Table, Window]]:
        """The tables with a window, in the order of the text."""
        tables = self.tables()
        return [(tables[index], window) for index, window in self.windows]


def tables_of(select: exp.Query) -> list[exp.Table]:
    """Every table in a tree, depth first, so that an index means the same table in a copy."""
    return list(select.find_all(exp.Table, bfs=False))
