"""``--table``: static tables that a query joins with its stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import InvalidData, InvalidOption
from slackwater.names import quoted
from slackwater.plan import Stream
from slackwater.spark.command.columns import parquet_dataset, spark_schema, stream_of_arrow, stream_of_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READ_OPTIONS = {
    "parquet": {},
    "json": {},
    # enforceSchema=false compares the header with the schema: columns in another order are an error, not wrong data
    "csv": {"header": "true", "inferSchema": "true", "enforceSchema": "false"},
}
_SYNTAX = re.compile(r"(?P<name>[^=(]+)(\((?P<schema>.+?)\))?=(?P<kind>\w+):(?P<where>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StaticTable:
    """A file or a folder of files, registered under ``name``; without ``schema`` Spark infers the types."""

    name: str
    kind: str
    where: str
    schema: str | None = None

    @classmethod
    def parse(cls, text: str) -> StaticTable:
        """A table from the text of ``--table``."""
        match = _SYNTAX.fullmatch(text)
        if match is None or match["kind"] not in _READ_OPTIONS:
            raise InvalidOption(
                "wrong-table",
                f"--table {text} is not NAME=FORMAT:PATH with format parquet, json or csv",
                "write NAME=FORMAT:PATH, or NAME(column TYPE, …)=FORMAT:PATH",
            )
        columns = None if match["schema"] is None else spark_schema(match["schema"])
        table = cls(match["name"].strip().strip("`"), match["kind"], match["where"], columns)
        if not Path(table.where).exists():
            raise InvalidData(
                "no-such-file", f"--table {table.name}: {table.where} does not exist", "name a file or folder"
            )
        return table

    def stream(self) -> Stream | None:
        """Its columns, or None if only Spark can find them out."""
        if self.schema is not None:
            return stream_of_text(self.name, self.schema)
        if self.kind != "parquet":
            return None
        schema = parquet_dataset(self.where, f"name Parquet files in --table {self.name}").schema
        return stream_of_arrow(self.name, schema, in_utc=False)

    def register(self, spark: SparkSession) -> None:
        """Create the temporary view ``name`` over the files."""
        from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary

        reader = spark.read.format(self.kind).options(**_READ_OPTIONS[self.kind])
        try:
            frame = (reader if self.schema is None else reader.schema(self.schema)).load(self.where)
            frame.head(1)  # report an unreadable file now, not in the middle of the query
        except SPARK_ERRORS as error:
            raise InvalidData(
                "unreadable-table",
                f"--table {self.name}: Spark cannot read {self.where} ({error_summary(error)})",
                f"check that the files are {self.kind} and that the columns are in the schema's order",
            ) from error
        frame.createOrReplaceTempView(quoted(self.name))


def static_tables(texts: Sequence[str]) -> tuple[StaticTable, ...]:
    """Tables from the texts of all ``--table`` options; a name may occur once."""
    tables: dict[str, StaticTable] = {}
    for table in map(StaticTable.parse, texts):
        if table.name.lower() in tables:
            raise InvalidOption("table-twice", f"--table {table.name} is given twice", "give each table once")
        tables[table.name.lower()] = table
    return tuple(tables.values())
