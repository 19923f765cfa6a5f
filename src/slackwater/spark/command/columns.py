"""The columns of a source, as far as they are known without Spark."""

from __future__ import annotations

import pyarrow as pa

from slackwater.errors import InvalidData
from slackwater.language import Measure
from slackwater.plan import Catalog

Columns = dict[str, Measure | None]


def measures_of_arrow(schema: pa.Schema) -> Columns:
    """The columns of Parquet files, and what each can order a stream by."""

    def measure(kind: pa.DataType) -> Measure | None:
        if pa.types.is_timestamp(kind):
            return Measure.TIME
        return Measure.NUMBER if pa.types.is_integer(kind) else None

    return {field.name: measure(field.type) for field in schema}


def measures_of_text(schema: str) -> Columns | None:
    """The columns of ``--schema``; None if only Spark can read it."""
    try:
        return dict(Catalog.from_sql(f"CREATE TABLE t ({schema})").streams["t"].columns)
    except InvalidData:
        return None
