"""What a client of Spark Connect knows without asking its server."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.connect.functions import builtin as F

from slackwater.errors import InvalidOption
from slackwater.spark.runtime.connect_plan import keeps_rows, streaming_reads
from slackwater.spark.windows.column_text import column_text

TEXTS = [
    (lambda: F.max("value").alias("peak"), "max(`value`) AS `peak`"),
    (lambda: F.count("value").alias("n"), "count(`value`) AS `n`"),
    (lambda: F.sum(F.col("value") * 2 + 1), "sum(((`value` * 2) + 1))"),
    (lambda: F.count_distinct("sensor"), "count(DISTINCT `sensor`)"),
    (lambda: F.coalesce(F.col("a.b"), F.lit("it's")), r"coalesce(`a`.`b`, 'it\'s')"),
    (lambda: F.expr("MAX(value)"), "(MAX(value))"),
    (lambda: F.lit(None), "NULL"),
    (lambda: F.lit(True), "TRUE"),
    (lambda: F.lit(2.5), "2.5"),
]


@pytest.mark.parametrize(("column", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_the_text_of_a_column(column: Any, text: str) -> None:
    assert column_text(column()) == text


@pytest.mark.parametrize(
    "column",
    [
        lambda: F.max(F.when(F.col("value") > 1, 1)),
        lambda: F.lit(float("nan")),
        lambda: F.lit(b"bytes"),
        lambda: F.col("value").cast("string"),
    ],
)
def test_a_column_without_a_text_is_refused(column: Any) -> None:
    with pytest.raises(InvalidOption, match=r"\[column-without-text\].*write Spark SQL instead"):
        column_text(column())


STREAM: dict[str, Any] = {"read": {"isStreaming": True, "dataSource": {"format": "json"}}}
TABLE: dict[str, Any] = {"read": {"isStreaming": True, "namedTable": {"unparsedIdentifier": "events"}}}


def function(name: str) -> dict[str, Any]:
    return {"unresolvedFunction": {"functionName": name}}


@pytest.mark.parametrize(
    ("plan", "keeps"),
    [
        (STREAM, True),
        ({"common": {}, "project": {"input": STREAM, "expressions": [function("upper")]}}, True),
        ({"withColumns": {"input": {"drop": {"input": STREAM}}}}, True),
        ({"project": {"input": STREAM, "expressions": [function("explode_outer")]}}, False),
        ({"project": {"input": STREAM, "expressions": [{"expressionString": {"expression": "explode(x)"}}]}}, False),
        ({"filter": {"input": STREAM}}, False),
        ({"join": {"left": STREAM, "right": STREAM}}, False),
        (TABLE, False),
    ],
)
def test_whether_all_rows_reach_the_promise(plan: dict[str, Any], keeps: bool) -> None:
    assert keeps_rows(plan) is keeps


def test_the_streams_below_a_plan() -> None:
    static = {"read": {"dataSource": {"format": "csv"}}}
    assert len(streaming_reads({"join": {"left": STREAM, "right": {"setOp": {"left": TABLE, "right": static}}}})) == 2
