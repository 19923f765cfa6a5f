"""Holds ``check --schema`` against Spark: for each text, does Spark refuse what the check accepts, or the other way?

``python -m tests.helpers.check_against_spark 300`` prints every text on which they disagree.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.errors import SlackwaterError
from slackwater.language import parse
from slackwater.plan import Catalog, plan_query_text
from slackwater.plan.name_checks import check_names
from tests.helpers.checked_texts import SCHEMA, SIDE, TABLES, texts

CATALOG = Catalog.from_sql(TABLES)
ROW = {
    "ts": "2026-01-05T08:00:00Z", "seen": "2026-01-05T08:00:01Z", "auction": 1, "bidder": 2, "price": 3, "rate": 0.5,
    "fee": 1.25, "channel": "a", "open": True, "day": "2026-01-05", "tags": ["a"], "extra": {"a": "b"},
    "item": {"kind": "k", "size": 4}, "raw": "eA==",
}  # fmt: skip
_RUNTIME = ("CAST_INVALID_INPUT", "DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "INVALID_ARRAY_INDEX", "NUMERIC_VALUE_OUT")


@dataclass(frozen=True)
class Verdicts:
    """The error of the check and that of Spark, each None if the text is right."""

    text: str
    checked: str | None
    spark: str | None

    @property
    def agree(self) -> bool:
        return (self.checked is None) == (self.spark is None)


def check(text: str) -> str | None:
    """What ``slackwater check --schema`` says."""
    try:
        query = parse(text)
        check_names(query, CATALOG)
        plan_query_text(query, CATALOG)
    except SlackwaterError as error:
        return str(error).splitlines()[0]
    return None


class SparkJudge:
    """What Spark says of a text, without the checks of names and types: it is analysed, started and given a row."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.number = spark, root, 0
        (root / "in").mkdir(parents=True)
        (root / "in" / "0.json").write_text(json.dumps(ROW) + "\n")
        sw.stream("bid", spark.readStream.schema(SCHEMA).json(str(root / "in")), event_time="ts")
        spark.createDataFrame([], SIDE).createOrReplaceTempView("side")

    def __call__(self, text: str) -> str | None:
        self.number += 1
        folder = self.root / str(self.number)
        with mock.patch("slackwater.spark.windows.sql.check_session_names"):
            try:
                result = sw.sql(self.spark, text, location=str(folder / "promises"))
                writer = result.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
                query = writer.start()
                try:
                    query.processAllAvailable()
                finally:
                    query.stop()
            except Exception as error:
                message = " ".join(str(error).split())
                return None if any(word in message for word in _RUNTIME) else message[:300]
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return None


def verdicts(spark: SparkSession, root: Path, count: int, seed: int) -> Iterator[Verdicts]:
    """Both verdicts on each text."""
    judge = SparkJudge(spark, root)
    for text in texts(count, seed):
        yield Verdicts(text, check(text), judge(text))


def main() -> None:
    """Print the disagreements, and how many there are."""
    from tests.conftest import SETTINGS

    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 29
    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    right = refused = 0
    differing = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for found in verdicts(spark, Path(folder), count, seed):
            right += found.agree and found.spark is None
            refused += found.agree and found.spark is not None
            if not found.agree:
                differing.append(found)
                print(f"{found.text}\n  check: {found.checked}\n  Spark: {found.spark}", flush=True)
    print(f"{count} texts: {right} right for both, {refused} refused by both, {len(differing)} disagreements")
    spark.stop()


if __name__ == "__main__":
    main()
