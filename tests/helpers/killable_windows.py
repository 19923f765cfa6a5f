"""Window queries in a process that a test kills: ``python -m tests.helpers.killable_windows ROOT [doomed]``.

Each query has its own checkpoint, output and promise. The result of a micro-batch goes into its own folder, so that a
micro-batch that runs again overwrites only its own result. With ``doomed``, every query stops at its ``Point`` in one
micro-batch, creates a file in ``hanging``, and waits to be killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import slackwater as sw
from slackwater.control.disorder import register
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.listener import wait_for_batch
from tests.helpers.controllers import Trailing
from tests.helpers.harness import SCHEMA, FileStream, heartbeat_read_ms, settle

FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
NUMBERED_SCHEMA = f"{SCHEMA}, number long"
LANDMARK = "2023-11-14 22:13:24"
"""Four seconds after the harness's origin."""
LONGEST_S = 4
"""Punctual rows are less late than this."""
PUNCTUAL = f"arrived - ts < INTERVAL {LONGEST_S} SECONDS"

Point = Literal["before", "within", "after"]
"""Killed before it writes; in a task that writes, after other tasks wrote state; or before the commit."""
FIRST_DOOMED = 5
"""From this micro-batch on a heartbeat is in force: the first two are needed to learn the clock."""


@dataclass(frozen=True)
class Text:
    """A query and where it is killed. With ``wait`` its heartbeat trails by that; without, its own method decides."""

    point: Point
    sql: str
    wait: float | None = None


_VALUES = "COUNT(*) AS n, SUM(value) AS total"
TEXTS = {
    "panes": Text(
        "within",
        f"SELECT sensor, {_VALUES} FROM Sensors "
        "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor",
        2000,
    ),
    "panes_of_numbers": Text(
        "before",
        f"SELECT sensor, {_VALUES} FROM Sensors [RANGE 60 SLIDE 20 WATTR number LATE PANES] GROUP BY sensor",
        20,
    ),
    "segments": Text(
        "within",
        f"SELECT sensor, {_VALUES} FROM Sensors [RANGE 121 SLIDE 1 WATTR number LATE PANES] GROUP BY sensor",
        20,
    ),
    "late_rows": Text(
        "after",
        f"SELECT sensor, {_VALUES} FROM Sensors "
        "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor",
        2000,
    ),
    "per_row": Text(
        "within",
        f"SELECT sensor, {_VALUES} FROM Sensors "
        "[RANGE 6 seconds ARRIVAL arrived SLACK 5 seconds LATE ROWS] GROUP BY sensor",
    ),
    "tuples": Text(
        "after", f"SELECT {_VALUES} FROM Punctual [RANGE 10 tuples SLIDE 4 tuples ARRIVAL arrived]", LONGEST_S * 1000
    ),
    "tuples_per_sensor": Text(
        "within",
        f"SELECT sensor, {_VALUES} FROM Sensors "
        "[RANGE 5 tuples SLIDE 2 tuples WATTR number PER sensor LATE ROWS] GROUP BY sensor",
        20,
    ),
    "landmark": Text(
        "before", f"SELECT sensor, {_VALUES} FROM Sensors [LANDMARK 855 WATTR number LATE ROWS] GROUP BY sensor", 20
    ),
    "landmark_steps": Text(
        "after",
        f"SELECT sensor, {_VALUES} FROM Punctual "
        f"[LANDMARK '{LANDMARK}' SLIDE 2 seconds ARRIVAL arrived] GROUP BY sensor",
        LONGEST_S * 1000,
    ),
}


POINTS: dict[str, Point] = {"delivered": "within", "promised": "after", **{n: text.point for n, text in TEXTS.items()}}


def trailing(wait: float) -> dict[str, Any]:
    return {"method": sw.Method(Trailing.name, wait_ms=wait)}


def delivered(events: DataFrame) -> DataFrame:
    return sw.ordered(events, event_time="ts", drop_ratio=0, arrival="arrived", name="delivered", **trailing(2000))


def promised(events: DataFrame) -> DataFrame:
    """Spark's own windows under a promise, over punctual rows only."""
    wait, punctual = f"{LONGEST_S} seconds", events.where(PUNCTUAL)
    under = sw.with_drop_ratio(punctual, "ts", "5%", arrival="arrived", name="promised", min_wait=wait)
    aggregates = F.count("*").alias("n"), F.sum("value").alias("total")
    return under.groupBy(F.window("ts", "5 seconds"), "sensor").agg(*aggregates)


def queries(spark: SparkSession, root: Path) -> dict[str, DataFrame]:
    events = FileStream(spark, root / "in", NUMBERED_SCHEMA).read_stream()
    sw.stream("Sensors", events, event_time="ts")
    sw.stream("Punctual", events.where(PUNCTUAL), event_time="ts")
    spark.conf.set("spark.slackwater.shards", 2)
    made = {"delivered": delivered(events), "promised": promised(events)}
    for name, text in TEXTS.items():
        options = {} if text.wait is None else trailing(text.wait)
        made[name] = sw.sql(spark, text.sql, name=name, **options)
    return made


@dataclass
class Sink:
    """Writes a query's results until it reaches ``point``; without one, to the end."""

    spark: SparkSession
    name: str
    folder: Path
    flag: Path
    point: Point | None
    batches: int = 0
    called: threading.Event = field(default_factory=threading.Event)

    def write(self, result: DataFrame, batch: int) -> None:
        self.called.set()
        # A micro-batch that is not yet reported would be missing from the ledger after the kill.
        self.await_report(batch - 1)
        doomed = self.point is not None and batch >= FIRST_DOOMED
        self.batches += 1
        placed = result.withColumn("place", F.monotonically_increasing_id())
        if doomed and self.point == "before":
            hang(self.flag)
        if doomed and self.point == "within":
            placed = placed.mapInArrow(hanging_with_rows(self.flag), placed.schema)
        target = str(self.folder / f"batch={batch}")
        placed.write.mode("overwrite").parquet(target)
        if doomed and self.point == "after" and not self.spark.read.parquet(target).isEmpty():
            hang(self.flag)

    def await_report(self, batch: int) -> None:
        (query_id,) = (str(query.id) for query in self.spark.streams.active if query.name == self.name)
        if self.batches:
            wait_for_batch(query_id, batch, timeout_s=60)


def hang(flag: Path) -> None:
    with suppress(FileExistsError):
        flag.touch(exist_ok=False)
        time.sleep(3600)


def hanging_with_rows(flag: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the first task that has a row to write hang; the other tasks end and write their state."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                hang(flag)
            yield batch

    return pass_on


def main(root: Path, doomed: bool) -> None:
    register(Trailing)
    conf = {
        "spark.slackwater.location": str(root / "slackwater"),
        # an idle query would advance with the real clock
        "spark.sql.streaming.noDataProgressEventInterval": "1h",
        # the default one starts processes for every file
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
    }
    os.environ["MASTER"] = "local[8]"  # a hanging task keeps its core
    with local_session("killable", **conf) as spark:
        running = {}
        for name, result in queries(spark, root).items():
            point = POINTS[name] if doomed else None
            # of two tasks, one can end and write its state while the other hangs
            spark.conf.set("spark.sql.shuffle.partitions", "2" if point == "within" else "1")
            sink = Sink(spark, name, root / "out" / name, root / "hanging" / name, point)
            writer = result.writeStream.queryName(name).foreachBatch(sink.write)
            running[name] = begin(writer.option("checkpointLocation", str(root / "checkpoints" / name)), sink)
        await_all(running, doomed)
        reports = {name: outcome(query) for name, query in running.items()}
        (root / "reports.json").write_text(json.dumps(reports))
        for query in running.values():
            query.stop()


def begin(writer: DataStreamWriter, sink: Sink) -> StreamingQuery:
    """Start a query and wait for its first micro-batch.

    Spark gives the Python process of a source ten seconds to start. On a busy machine that may not be enough: the
    query fails before it has done anything, and is started again.
    """
    query = writer.start()
    while not sink.called.wait(timeout=0.2):
        if not query.isActive:
            assert "failed to connect back" in str(query.exception()), query.exception()
            query = writer.start()
    return query


def await_all(running: dict[str, StreamingQuery], doomed: bool) -> None:
    with ThreadPoolExecutor(len(running)) as pool:
        for settled in as_completed([pool.submit(settle, query) for query in running.values()]):
            failure = settled.exception()
            if failure is not None or doomed:
                # other queries hang by now, so a clean end is impossible
                print(failure or "a query ended without reaching its point", file=sys.stderr, flush=True)
                os._exit(1)


def outcome(query: StreamingQuery) -> dict[str, Any]:
    return {**sw.report(query).as_json(), "heartbeat_ms": heartbeat_read_ms(query.lastProgress)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), doomed="doomed" in sys.argv[2:])
