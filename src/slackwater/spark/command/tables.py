"""Static tables of the command: files that a query joins its stream with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from slackwater.errors import InvalidData, InvalidOption
from slackwater.names import quoted
from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary

_OPTIONS = {
    "parquet": {},
    "json": {},
    # by position alone, a file with its columns in another order would be read without a word
    "csv": {"header": "true", "inferSchema": "true", "enforceSchema": "false"},
}
_WRITTEN = re.compile(r"(?P<name>[^=(]+)(\((?P<schema>.+?)\))?=(?P<kind>\w+):(?P<where>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StaticTable:
    """A file, or a folder of files, under a name; types are inferred where no schema says them."""

    name: str
    kind: str
    where: str
    schema: str | None = None

    @classmethod
    def of(cls, text: str) -> StaticTable:
        """A table as it is written on the command line."""
        said = _WRITTEN.fullmatch(text)
        if said is None or said["kind"] not in _OPTIONS:
            raise InvalidOption(
                "wrong-table",
                f"--table {text} names no table",
                "write NAME=FORMAT:PATH, with parquet, json or csv, or NAME(column TYPE, …)=FORMAT:PATH",
            )
        table = cls(said["name"].strip().strip("`"), said["kind"], said["where"], said["schema"])
        if not Path(table.where).exists():
            raise InvalidData(
                "no-such-file", f"--table {table.name}: there is no {table.where}", "name a file or folder"
            )
        return table

    def register(self, spark: SparkSession) -> None:
        """Make it a temporary view, read as it is now."""
        reader = spark.read.format(self.kind).options(**_OPTIONS[self.kind])
        try:
            frame = (reader if self.schema is None else reader.schema(self.schema)).load(self.where)
            frame.head(1)  # a file that cannot be read would else be found in the middle of the query
        except SPARK_ERRORS as error:
            raise InvalidData(
                "unreadable-table",
                f"--table {self.name}: Spark cannot read {self.where} ({error_summary(error)})",
                f"name files of the format {self.kind}, and columns in their order",
            ) from error
        frame.createOrReplaceTempView(quoted(self.name))


def static_tables(texts: Sequence[str]) -> tuple[StaticTable, ...]:
    """Tables as they are written on the command line, each name once."""
    tables: dict[str, StaticTable] = {}
    for table in map(StaticTable.of, texts):
        if table.name.lower() in tables:
            raise InvalidOption("table-twice", f"--table {table.name} is given twice", "give each table once")
        tables[table.name.lower()] = table
    return tuple(tables.values())
