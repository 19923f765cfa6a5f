"""Nexmark's queries as streams and as batch jobs over the same rows.

``queries/qNN.sql`` is the query in Slackwater's language, ``qNN.batch.sql`` what plain Spark computes from all rows.
Where the original query is refused, ``qNN.original.sql`` holds it, and ``qNN.sql`` a form that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from tests.helpers.harness import settle, values
from tests.nexmark.rows import CLOSING, nexmark_rows, write_files

QUERIES = Path(__file__).parent / "queries"
NUMBERS = range(23)
FILES = 3
WAIT_MS = 20_000.0  # longer than any row is late
SIDE = "SELECT id AS key, CONCAT('side ', id) AS value FROM range(10)"
WINNING = "SELECT A.seller, B.price, B.dateTime, B.dateTime AS arrived " + (
    "FROM auction AS A JOIN bid AS B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) = 1"
)


@dataclass(frozen=True)
class Outcome:
    """The results of a query over the stream, and of its batch, sorted; the rows that each promise counted."""

    streamed: list[tuple[object, ...]]
    batch: list[tuple[object, ...]]
    inputs: dict[str, int]


def text_of(number: int, kind: str = "") -> str | None:
    """The text of a query (``""``, ``"batch"`` or ``"original"``); None if there is none."""
    path = QUERIES / (f"q{number:02}.{kind}.sql" if kind else f"q{number:02}.sql")
    return path.read_text(encoding="utf-8") if path.exists() else None


class Suite:
    """The streams, registered in ``spark``, and the same rows as tables of a session of their own."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.batch = spark.newSession()
        self._add(write_files(nexmark_rows(), root / "in", FILES))
        winning = self.batch.sql(WINNING).where("price IS NOT NULL").toPandas().sort_values("dateTime", kind="stable")
        last = winning.iloc[[-1]].assign(dateTime=CLOSING.tz_localize(None), seller=-1)
        rows = pd.concat([winning, last], ignore_index=True)
        times = {column: rows[column].dt.tz_localize("UTC") for column in ("dateTime", "arrived")}
        self._add(write_files({"winning": rows.assign(**times)}, root / "in", FILES))
        for session in (spark, self.batch):
            session.sql(SIDE).createOrReplaceTempView("side")

    def _add(self, files: dict[str, list[Path]]) -> None:
        for name, paths in files.items():
            table = self.batch.read.parquet(*map(str, paths))
            table.createOrReplaceTempView(name)
            folder = str(paths[0].parent)
            stream = self.spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1).parquet(folder)
            sw.stream(name, stream, event_time="dateTime")

    def run(self, number: int) -> Outcome:
        """Run one query over the streams until they end, and its batch."""
        text, batch = text_of(number), text_of(number, "batch")
        assert text is not None and batch is not None
        return self.compare(f"q{number:02}", text, batch)

    def compare(self, name: str, text: str, batch: str) -> Outcome:
        """Run any query over the streams until they end, and the batch that should equal it."""
        expected = self.batch.sql(batch)
        folder = self.root / name
        method = sw.Method("test-trailing", wait_ms=WAIT_MS)
        result = sw.sql(self.spark, text, name=name, method=method, location=str(folder / "promises"))
        writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        try:
            settle(query)
            inputs = {promise.name: promise.ledger.input for promise in sw.report(query).completeness}
        finally:
            query.stop()
        found = self.spark.read.schema(result.schema).parquet(str(folder / "out"))
        return Outcome(values(found.select(*expected.columns)), self._closed(expected), inputs)

    def _closed(self, expected: DataFrame) -> list[tuple[object, ...]]:
        """The results of the batch without the windows of the closing rows."""
        if "window_end" in expected.columns:
            expected = expected.where("window_end <= '2024-03-02'")
        if "seller" in expected.columns:
            expected = expected.where("seller >= 0")
        return values(expected)
