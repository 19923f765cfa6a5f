"""The parsed query as plain values. Positions in the text are kept for error messages only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token


class Measure(enum.Enum):
    """The unit of an extent: time, rows, or the numbers of a numeric windowing attribute."""

    TIME = "time"
    TUPLES = "tuples"
    NUMBER = "number"


class Late(enum.Enum):
    """How late rows are reported (``LATE …``)."""

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
    """A bracket clause. ``shed_by`` is Spark SQL: a column, quoted where needed, or an expression.

    ``after_where``: rows are shed after the conditions of WHERE that cost little, not right after the source.

    ``positions`` maps each keyword to the start and the length of its part of the text; equality ignores it.
    """

    range: Extent | None = None
    slide: Extent | None = None
    landmark: str | float | None = None
    session_ms: float | None = None
    attribute: str | None = None
    per: tuple[str, ...] = ()
    slack: Extent | None = None
    drop_ratio: float | None = None
    delay_ms: float | None = None
    after_where: bool = False
    shed_by: str | None = None
    arrival: str | None = None
    sources: tuple[str, ...] = ()
    heartbeat: str | None = None
    late: Late | None = None
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def by_punctuations(self) -> bool:
        """Whether the clause has both ``SLACK 0`` and ``DRATIO``, which asks for punctuations and sets no cap.

        Kim 2007, Section 4. ``SLACK 0`` without ``DRATIO`` is a fixed buffer of size 0.
        """
        return self.slack is not None and self.slack.amount == 0 and self.drop_ratio is not None


@dataclass(frozen=True, slots=True)
class UsingOption:
    """One option of ``USING (…)``: a whole number, milliseconds, a name, or True for an option without a value.

    ``position`` is the start and the length of its part of the text; equality ignores it.
    """

    name: str
    value: int | float | str | bool
    position: tuple[int, int] = field(default=(0, 1), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Precision:
    """``WITHIN x|x% CONFIDENCE y% [USING (…)]``: an error bound, absolute or relative, a confidence, and options."""

    bound: float
    relative: bool
    confidence: float
    using: tuple[UsingOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A query: sqlglot's syntax tree, the windows of its streams, and its trailing clauses.

    ``windows`` holds one pair for each table with a window: the index of the table in ``tables()``, and the window.
    The query was parsed from ``text``, where it begins at the character ``start``; ``tokens`` are those of its SELECT,
    without windows. Equality ignores these three.
    """

    select: exp.Query
    windows: tuple[tuple[int, Window], ...]
    precision: Precision | None = None
    with_error: bool = False
    text: str = field(default="", compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)

    def tables(self) -> list[exp.Table]:
        """Return every table that the query reads, in the order of the tree."""
        return tables_of(self.select)

    def windowed(self) -> list[tuple[exp.Table, Window]]:
        """Return each table that has a window, and the window."""
        tables = self.tables()
        return [(tables[index], window) for index, window in self.windows]


def tables_of(select: exp.Query) -> list[exp.Table]:
    """Return every table of a tree, depth first; an index means the same table in a copy of the tree."""
    return list(select.find_all(exp.Table, bfs=False))
