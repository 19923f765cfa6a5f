"""Queries on a cluster, in a driver that a test kills: ``python -m tests.helpers.killable_cluster ROOT``.

Every file that appears in ``ROOT/asked`` asks for one step: the driver waits until all queries have read all rows, and
then writes the reports into ``ROOT/done``, under the same name. If ``ROOT/armed`` has a file with the name of a query,
the query's next task that publishes stops, says in ``ROOT/hanging`` which executor runs it, and waits for
``ROOT/released``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control import disorder, shedding
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.starting import start_with_retries
from tests.helpers.controllers import Scripted, Trailing
from tests.helpers.harness import FileStream, heartbeat_read_ms, settle
from tests.helpers.killable_windows import FILE_MANAGER, NUMBERED_SCHEMA, PUNCTUAL, TEXTS, promised, trailing
from tests.helpers.standing import updates

FOLDERS = ("asked", "done", "armed", "hanging", "released")
WINDOWS = ("panes", "tuples_per_sensor")
NAMES = ("promised", *WINDOWS, "shed", "standing")
IN_FOREACH_BATCH = ("panes", "shed")
_POLL_S = 0.05


def queries(spark: SparkSession, root: Path) -> dict[str, DataFrame]:
    events = FileStream(spark, root / "in", NUMBERED_SCHEMA).read_stream()
    sw.stream("Sensors", events, event_time="ts")
    sw.stream("Punctual", events.where(PUNCTUAL), event_time="ts")
    made = {"promised": promised(events)}
    for name in WINDOWS:
        made[name] = sw.sql(spark, TEXTS[name].sql, name=name, **trailing(TEXTS[name].wait or 0.0))
    half = sw.Law(Scripted.name, ratios=(0.5,))
    made["shed"] = sw.with_max_delay(events, "1 second", law=half, name="shed")
    made["standing"] = updates(spark, root / "standing", name="standing", _limited=False)
    return made


@dataclass(frozen=True)
class Stopping:
    """Lets rows pass, unless its query is armed: then the first task that comes by stops until it is released."""

    root: Path
    name: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        armed, hanging = self.root / "armed" / self.name, self.root / "hanging" / self.name
        if armed.exists():
            with suppress(FileExistsError):
                descriptor = os.open(hanging, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                os.write(descriptor, str(executor_pid()).encode())
                os.close(descriptor)
                while not (self.root / "released" / self.name).exists():
                    time.sleep(_POLL_S)
        yield from batches


@dataclass(frozen=True)
class Losing:
    """Lets rows pass, but the first task that has one to publish kills its executor, once: then ``flag`` exists."""

    flag: Path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                with suppress(FileExistsError):
                    self.flag.touch(exist_ok=False)
                    os.kill(executor_pid(), signal.SIGKILL)
            yield batch


def executor_pid() -> int:
    """The process of the executor that runs this Python worker."""
    pid = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def overwriting(folder: Path) -> Callable[[DataFrame, int], None]:
    """A sink that writes each micro-batch into its own folder, so that a repeated one overwrites its own result."""
    return lambda result, batch: result.write.mode("overwrite").parquet(str(folder / f"batch={batch}"))


def start(name: str, result: DataFrame, root: Path) -> StreamingQuery:
    stopping = result.mapInArrow(Stopping(root, name), result.schema)
    writer = stopping.writeStream.queryName(name).option("checkpointLocation", str(root / "checkpoints" / name))
    if name in IN_FOREACH_BATCH:
        writer = writer.foreachBatch(overwriting(root / "out" / name))
    else:
        writer = writer.format("parquet").option("path", str(root / "out" / name))
    return start_with_retries(writer)


def main(root: Path) -> None:
    disorder.register(Trailing)
    shedding.register(Scripted)
    conf = {
        "spark.executor.memory": "600m",
        "spark.locality.wait": "0s",
        "spark.shuffle.io.retryWait": "1s",
        "spark.slackwater.location": str(root / "slackwater"),
        "spark.slackwater.shards": "2",
        # an idle query would advance with the real clock
        "spark.sql.streaming.noDataProgressEventInterval": "1h",
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.streaming.pollingDelay": "100ms",
    }
    with local_session("killable", **conf) as spark:
        running = {name: start(name, result, root) for name, result in queries(spark, root).items()}
        while True:
            done = {path.name for path in (root / "done").iterdir()}
            for step in sorted({path.name for path in (root / "asked").iterdir()} - done):
                for query in running.values():
                    settle(query)
                reports = json.dumps({name: outcome(query) for name, query in running.items()})
                hidden = root / f".{step}"
                hidden.write_text(reports)
                hidden.rename(root / "done" / step)
            time.sleep(_POLL_S)


def outcome(query: StreamingQuery) -> dict[str, Any]:
    found = sw.report(query).as_json()
    with suppress(ValueError, TypeError):  # not every query has a heartbeat
        found["heartbeat_ms"] = heartbeat_read_ms(query.lastProgress)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
