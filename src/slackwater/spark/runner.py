"""Sources and sinks of the command, and a query run from one to the other."""

from __future__ import annotations

import os
import tempfile
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import InvalidData, InvalidOption
from slackwater.language import parse
from slackwater.plan import Plan
from slackwater.spark.generator import Readings, read_stream
from slackwater.spark.query import plan_query, run_query
from slackwater.spark.report import Report, report
from slackwater.spark.streams import stream
from slackwater.spark.supervisor import keepers_of

_FILES = ("json", "parquet", "csv")
_REPLAY_BATCHES = 50


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: files of a folder, the generator, or a recorded table."""

    kind: str
    where: str
    schema: str | None

    @classmethod
    def of(cls, text: str, schema: str | None) -> Source:
        """A source as it is written on the command line.

        >>> Source.of("json:in", "ts TIMESTAMP").kind
        'json'
        """
        kind, _, where = text.partition(":")
        if kind not in (*_FILES, "generator", "replay") or not where:
            raise InvalidOption(
                "unknown-source",
                f"--source {text} is none",
                "use json:FOLDER, parquet:FOLDER, csv:FOLDER, generator:RATE or replay:FILE",
            )
        if kind in ("json", "csv") and schema is None:
            raise InvalidOption(
                "no-schema", f"--source {text} needs the type of its rows", "add --schema 'ts TIMESTAMP'"
            )
        if kind == "generator" and not (where.isdigit() and int(where)):
            raise InvalidOption("invalid-rate", f"--source {text}: {where} is no rate", "write generator:1000")
        return cls(kind, where, schema)

    def read(self, spark: SparkSession, arrival: str | None, limit_s: float | None, scratch: Path) -> DataFrame:
        """The source as a stream."""
        if self.kind == "generator":
            rate = int(self.where)
            return read_stream(spark, Readings(rate, int(rate * (limit_s or 60.0)), int(clock.time() * 1e6)))
        if self.kind == "replay":
            return self._replay(spark, arrival, scratch)
        if not Path(self.where).is_dir():
            raise InvalidData("no-such-folder", f"there is no folder {self.where}", "name the folder of the files")
        schema = self.schema
        reader = spark.readStream.option("maxFilesPerTrigger", 1)
        if schema is None:
            return reader.schema(spark.read.parquet(self.where).schema).parquet(self.where)
        return reader.schema(schema).format(self.kind).load(self.where)

    def _replay(self, spark: SparkSession, arrival: str | None, scratch: Path) -> DataFrame:
        """A recorded table, cut into micro-batches in the order of arrival (or of the file, without one)."""
        try:
            table = spark.read.parquet(self.where)
        except AnalysisException as error:
            raise InvalidData("no-such-file", f"{self.where} is no Parquet file", "name a recorded table") from error
        rows = table.toPandas()
        if arrival is not None and arrival in rows:
            rows = rows.sort_values(arrival, kind="stable")
        size = -(-len(rows) // _REPLAY_BATCHES) or 1
        folder = scratch / "replay"
        folder.mkdir(parents=True)
        for number, start in enumerate(range(0, len(rows), size)):
            path = folder / f"{number:05d}.parquet"
            rows.iloc[start : start + size].to_parquet(
                path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True
            )
            os.utime(path, (number, number))  # Spark takes the oldest file first
        return spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@dataclass(frozen=True, slots=True)
class Sink:
    """Where results go."""

    kind: str
    where: str | None

    @classmethod
    def of(cls, text: str) -> Sink:
        """A sink as it is written on the command line.

        >>> Sink.of("parquet:out")
        Sink(kind='parquet', where='out')
        """
        kind, _, where = text.partition(":")
        if kind not in ("console", "parquet", "json") or (kind != "console") != bool(where):
            raise InvalidOption("unknown-sink", f"--sink {text} is none", "use console, parquet:FOLDER or json:FOLDER")
        return cls(kind, where or None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    plan: Plan
    report: Report


def run_text(
    spark: SparkSession,
    text: str,
    *,
    table: str,
    source: Source,
    time: str | None,
    sink: Sink,
    checkpoint: Path | None,
    limit_s: float | None,
    tell: Callable[[int], None],
) -> Outcome:
    """Run a query until its time is over, or, without a limit, until nothing comes any more.

    It fails with what Spark says if the query fails.
    """
    query_text = parse(text)
    arrival = query_text.windowed()[0][1].arrival
    with tempfile.TemporaryDirectory(prefix="slackwater-run-") as scratch:
        stream(table, source.read(spark, arrival, limit_s, Path(scratch)), time=time)
        plan, _ = plan_query(spark, query_text)
        place = str(checkpoint or Path(scratch) / "checkpoint")
        promises = None if checkpoint is None else str(checkpoint.resolve() / "slackwater")
        result = run_query(spark, query_text, name=table, location=promises)
        writer = result.writeStream.outputMode("append").option("checkpointLocation", place).format(sink.kind)
        if sink.where is not None:
            writer = writer.option("path", sink.where)
        query = writer.option("truncate", False).start()
        try:
            _wait(query, limit_s, tell)
            return Outcome(plan, report(query))
        except StreamingQueryException as error:
            raise InvalidData("query-failed", f"the query failed: {error.getMessage()}", "see Spark's log") from error
        finally:
            query.stop()


def _wait(query: StreamingQuery, limit_s: float | None, tell: Callable[[int], None]) -> None:
    end = None if limit_s is None else clock.monotonic() + limit_s
    while query.isActive and (end is None or clock.monotonic() < end):
        if end is None:
            query.processAllAvailable()
        else:
            query.awaitTermination(1)
        progress = query.lastProgress
        batch = -1 if progress is None else int(progress["batchId"])
        keepers = keepers_of(str(query.id), batch, timeout_s=30)
        tell(sum(keeper.ledger.input for keeper in keepers))
        if end is None:
            query.processAllAvailable()
            latest = query.lastProgress
            if latest is None or int(latest["batchId"]) == batch:
                return
    failure = query.exception()
    if failure is not None:
        raise failure
