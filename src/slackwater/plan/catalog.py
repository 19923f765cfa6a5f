"""Known streams and their columns. The planner checks less for a stream that is not in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from slackwater.errors import InvalidData
from slackwater.language import Measure
from slackwater.plan.sql_types import class_of_type

# TIMESTAMP_NTZ is excluded: it has no time zone and therefore does not determine an instant.
_TIME_TYPES = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ}
_NUMBER_TYPES = {exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: its name, its columns, and its time column if it was registered with one.

    ``columns`` maps each name to what the column can order the stream by, or to None. ``zoneless`` are the timestamps
    without a time zone, which cannot order it until they are cast. ``types`` has the class of each column's type, as
    far as it is known (``sql_types``).
    """

    name: str
    columns: Mapping[str, Measure | None]
    time: str | None = None
    zoneless: frozenset[str] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str | None:
        """Return the column of that name, in any case, as the stream spells it, or None."""
        return next((column for column in self.columns if column.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Streams by name; names ignore case.

    >>> Catalog.from_sql("CREATE TABLE Sensors (ts TIMESTAMP, value DOUBLE)").find("sensors").time
    'ts'
    """

    streams: Mapping[str, Stream] = field(default_factory=dict)

    def find(self, name: str) -> Stream | None:
        """Return the stream of that name, or None."""
        return self.streams.get(name.lower())

    @classmethod
    def of(cls, *streams: Stream) -> Catalog:
        """Make a catalog of these streams."""
        return cls({stream.name.lower(): stream for stream in streams})

    @classmethod
    def from_sql(cls, text: str) -> Catalog:
        """Make a catalog from ``CREATE TABLE name (column TYPE, …)``; the first timestamp column is the time column."""
        try:
            trees = [tree for tree in sqlglot.parse(text, read="spark") if tree is not None]
        except ParseError as error:
            raise _not_a_schema(error) from error
        if not trees:
            raise InvalidData(
                "wrong-schema", "the schema declares no table", "write CREATE TABLE name (column TYPE, …)"
            )
        streams = []
        for tree in trees:
            if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
                problem = f"{tree.sql()[:60]!r} does not create a table"
                raise InvalidData("wrong-schema", problem, "write CREATE TABLE name (…)")
            untyped = next((one for one in tree.this.expressions if not isinstance(one, exp.ColumnDef)), None)
            if untyped is not None:
                raise InvalidData("wrong-schema", f"{untyped.sql()!r} is not a column with a type", "write name TYPE")
            columns = {column.name: measure_of(column.kind) for column in tree.this.expressions}
            time = next((name for name, measure in columns.items() if measure is Measure.TIME), None)
            zoneless = (c.name for c in tree.this.expressions if c.kind and c.kind.this == exp.DType.TIMESTAMPNTZ)
            types = {column.name: class_of_type(column.kind) for column in tree.this.expressions}
            streams.append(Stream(tree.this.this.name, columns, time, frozenset(zoneless), types))
        return cls.of(*streams)


def _not_a_schema(error: ParseError) -> InvalidData:
    found = error.errors[0]
    where = f"line {found['line']}, at {found['highlight']!r}" if found.get("highlight") else found["description"]
    problem = f"the schema is not Spark SQL ({where})"
    return InvalidData("wrong-schema", problem, "write CREATE TABLE name (column TYPE, …)")


def measure_of(kind: exp.DataType | None) -> Measure | None:
    """Return what a column of this type can order a stream by: time, number, or None."""
    if kind is None:
        return None
    if kind.this in _TIME_TYPES:
        return Measure.TIME
    return Measure.NUMBER if kind.this in _NUMBER_TYPES else None
