"""What is known about the streams that a query names: maybe nothing, and then less can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from slackwater.errors import InvalidData
from slackwater.language import Measure

# A TIMESTAMP_NTZ is no instant: which one it means depends on a zone that it does not have.
_TIME_TYPES = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ}
_NUMBER_TYPES = {exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream by name: its columns (name → what it orders by, or None), and the time column it was given with."""

    name: str
    columns: Mapping[str, Measure | None]
    time: str | None = None

    def column(self, name: str) -> str | None:
        """The column of that name as the stream spells it."""
        return next((column for column in self.columns if column.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Streams by name, in any case.

    >>> Catalog.from_sql("CREATE TABLE Sensors (ts TIMESTAMP, value DOUBLE)").find("sensors").time
    'ts'
    """

    streams: Mapping[str, Stream] = field(default_factory=dict)

    def find(self, name: str) -> Stream | None:
        """The stream of that name, or None if nothing is known about it."""
        return self.streams.get(name.lower())

    @classmethod
    def of(cls, *streams: Stream) -> Catalog:
        """A catalog of these streams."""
        return cls({stream.name.lower(): stream for stream in streams})

    @classmethod
    def from_sql(cls, text: str) -> Catalog:
        """A catalog from ``CREATE TABLE name (column TYPE, …)``; the first timestamp column is the time column."""
        try:
            trees = [tree for tree in sqlglot.parse(text, read="spark") if tree is not None]
        except ParseError as error:
            raise InvalidData(
                "wrong-schema", f"the schema is no Spark SQL ({error.errors[0]['description']})", "write CREATE TABLE …"
            ) from error
        streams = []
        for tree in trees:
            if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
                raise InvalidData("wrong-schema", f"{tree.sql()[:60]!r} is no schema", "write CREATE TABLE name (…)")
            untyped = next((one for one in tree.this.expressions if not isinstance(one, exp.ColumnDef)), None)
            if untyped is not None:
                raise InvalidData("wrong-schema", f"{untyped.sql()!r} is no column with a type", "write name TYPE")
            columns = {column.name: measure_of(column.kind) for column in tree.this.expressions}
            time = next((name for name, measure in columns.items() if measure is Measure.TIME), None)
            streams.append(Stream(tree.this.this.name, columns, time))
        return cls.of(*streams)


def measure_of(kind: exp.DataType | None) -> Measure | None:
    """What a column of that type can order a stream by: a time, a number, or nothing."""
    if kind is None:
        return None
    if kind.this in _TIME_TYPES:
        return Measure.TIME
    return Measure.NUMBER if kind.this in _NUMBER_TYPES else None
