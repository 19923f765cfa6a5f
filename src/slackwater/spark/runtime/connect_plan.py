"""What a Spark Connect client knows of a DataFrame's plan: the message that it sends to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

_KEEPING = {
    "read",
    "project",
    "withColumns",
    "withColumnsRenamed",
    "drop",
    "subqueryAlias",
    "collectMetrics",
    "repartition",
    "toDf",
    "toSchema",
}
"""Operators that neither remove rows nor add any, unless a function in them does."""
_ADDING = ("explode", "inline", "stack", "json_tuple")


def plan_message(frame: DataFrame) -> dict[str, Any]:
    """The plan as plain values."""
    from google.protobuf import json_format

    remote: Any = frame
    to_values: Any = json_format.MessageToDict
    return dict(to_values(remote._plan.to_proto(remote.sparkSession.client))["root"])


def streaming_reads(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """All streams that are read by name or from a source."""
    return [read for read in _values_of(plan, "read") if read.get("isStreaming")]


def keeps_rows(plan: dict[str, Any]) -> bool:
    """Whether all rows of one source reach the top, and no others; False also where that is not clear."""
    functions = {str(call.get("functionName", "")).lower() for call in _values_of(plan, "unresolvedFunction")}
    if any(name.startswith(("pos" + add, add)) for name in functions for add in _ADDING):
        return False
    if next(_values_of(plan, "expressionString"), None) is not None:
        return False
    while True:
        (kind,) = plan.keys() - {"common"}
        if kind not in _KEEPING:
            return False
        if kind == "read":
            return "dataSource" in plan[kind]  # a table may be a view with a filter
        plan = plan[kind]["input"]


def _values_of(node: Any, key: str) -> Iterator[dict[str, Any]]:
    """All values under a key, at any depth."""
    if isinstance(node, dict):
        if isinstance(node.get(key), dict):
            yield node[key]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _values_of(child, key)
