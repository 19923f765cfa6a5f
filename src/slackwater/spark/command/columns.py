"""The columns of a source, as far as they are known without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from slackwater.errors import InvalidData, InvalidOption
from slackwater.files import data_files
from slackwater.language import Measure
from slackwater.names import find_name, near, quoted
from slackwater.plan import Catalog, Stream
from slackwater.plan.sql_types import UNKNOWN, StructClass

_TYPE_NAMES = (
    "array bigint binary boolean byte char character date dec decimal double float geography geometry int integer "
    "interval long map numeric real short smallint string struct time timestamp timestamp_ltz timestamp_ntz tinyint "
    "varchar variant void"
)
_TYPES = frozenset(_TYPE_NAMES.split())
_COLUMN = re.compile(r"\s*(?P<name>`[^`]+`|\w+)\s*:?\s*(?P<type>\w*)(?P<rest>.*)", re.DOTALL)
_CLASSES = (
    (pa.types.is_unsigned_integer, UNKNOWN),
    (pa.types.is_boolean, "b"),
    (pa.types.is_int64, "l"),
    (pa.types.is_integer, "i"),
    (pa.types.is_decimal, "c"),
    (pa.types.is_floating, "d"),
    (pa.types.is_string, "s"),
    (pa.types.is_large_string, "s"),
    (pa.types.is_timestamp, "t"),
    (pa.types.is_date, "e"),
    (pa.types.is_binary, "x"),
    (pa.types.is_list, "a"),
    (pa.types.is_map, "m"),
)


def columns_named(columns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The columns of these names, as the data spells them; refuses a name that no column has."""
    found = []
    for name in names:
        column = find_name(name, columns)
        if column is None:
            problem = f"unknown column {name!r}{near(name, columns)}"
            raise InvalidData("no-such-column", problem, f"use one of: {', '.join(columns)}")
        found.append(column)
    return found


def parquet_dataset(where: str, remedy: str = "name Parquet files") -> ds.Dataset:
    """The Parquet files of a folder, whose names may hold columns (``day=1``), or of a pattern."""
    place = where.removeprefix("file://")
    try:
        if Path(place).is_dir():
            return ds.dataset(place, format="parquet", partitioning="hive")
        return ds.dataset([str(file) for file in data_files(where)], format="parquet")
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidData("not-parquet", f"{where} is not Parquet ({str(error).splitlines()[0]})", remedy) from error


def stream_of_arrow(name: str, schema: pa.Schema, *, in_utc: bool) -> Stream:
    """The stream of Parquet files. ``in_utc`` says that timestamps without a time zone are read as UTC."""
    zoneless = {field.name for field in schema if not in_utc and _is_zoneless(field.type)}
    columns = {field.name: None if field.name in zoneless else _measure(field.type) for field in schema}
    types = {field.name: "n" if field.name in zoneless else _class(field.type) for field in schema}
    return Stream(name, columns, zoneless=frozenset(zoneless), types=types)


def stream_of_text(name: str, schema: str) -> Stream:
    """The stream of ``--schema``.

    >>> stream_of_text("Readings", "ts TIMESTAMP, value DOUBLE").columns["ts"].value
    'time'
    """
    try:
        found = Catalog.from_sql(f"CREATE TABLE t ({schema})").streams["t"]
    except InvalidData as error:
        raise _wrong_schema(schema, "it is not a list of columns with types") from error
    return Stream(name, found.columns, zoneless=found.zoneless, types=found.types)


def spark_schema(schema: str) -> str:
    """The text of ``--schema`` with names in backticks, as Spark takes it; refuses what has no name or no type.

    >>> spark_schema("Zeit_über TIMESTAMP, value: DOUBLE")
    '`Zeit_über` TIMESTAMP, `value` DOUBLE'
    """
    declared = []
    for column in _split(schema):
        match = _COLUMN.fullmatch(column)
        if match is None:
            raise _wrong_schema(schema, f"{column.strip()!r} is not a column with a type")
        if not match["type"]:
            raise _wrong_schema(schema, f"{match['name']} has no type")
        if match["type"].lower() not in _TYPES:
            suggestion = near(match["type"], _TYPE_NAMES.upper().split())
            raise _wrong_schema(schema, f"Spark has no type {match['type']}{suggestion}")
        name = match["name"] if match["name"].startswith("`") else quoted(match["name"])
        declared.append(f"{name} {match['type']}{match['rest'].rstrip()}")
    text = ", ".join(declared)
    stream_of_text("", text)
    return text


def _split(schema: str) -> list[str]:
    """The text at its commas, but not at those in brackets, quotes or backticks."""
    depth, quote, parts = 0, "", [""]
    for letter in schema:
        if quote or letter in "'\"`":
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "<(") - (letter in ">)")
            if depth < 0:
                raise _wrong_schema(schema, f"there is a {letter} too many")
        if letter == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _wrong_schema(schema: str, problem: str) -> InvalidOption:
    remedy = "write names and Spark's types, such as 'ts TIMESTAMP, value DOUBLE'"
    return InvalidOption("wrong-schema", f"schema {schema!r}: {problem}", remedy)


def _is_zoneless(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is None


def _measure(kind: pa.DataType) -> Measure | None:
    if pa.types.is_timestamp(kind):
        return Measure.TIME
    return Measure.NUMBER if pa.types.is_integer(kind) else None


def _class(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return StructClass({field.name: _class(field.type) for field in kind})
    return next((letter for matches, letter in _CLASSES if matches(kind)), UNKNOWN)
