"""The process that runs the queries and that is killed: ``python -m tests.soak.child ROOT KIND…``.

It reads commands from its standard input and answers each with one line of JSON on its standard output. ``settle``
waits until all queries have read all rows, and answers with their reports. A query that has failed is started again,
as a supervisor would, and the answer says why it failed. ``stop`` ends everything cleanly.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.starting import start_with_retries
from tests.helpers.harness import settle
from tests.helpers.killable_windows import FILE_MANAGER
from tests.soak.queries import register, writer

_TRIES = 3


class Queries:
    """The running queries, and why some of them had to be started again."""

    def __init__(self, spark: SparkSession, root: Path, kinds: list[str]) -> None:
        self._writers = {kind: writer(kind, spark, root) for kind in kinds}
        self._running: dict[str, StreamingQuery] = {kind: start_with_retries(w) for kind, w in self._writers.items()}

    def settle(self) -> dict[str, Any]:
        """Read all rows; the reports and the failures on the way."""
        failures: dict[str, list[str]] = {}
        reports = {}
        for kind in self._writers:
            for _ in range(_TRIES):
                try:
                    settle(self._running[kind])
                    reports[kind] = sw.report(self._running[kind]).as_json()
                    break
                except Exception as error:
                    failures.setdefault(kind, []).append(f"{type(error).__name__}: {error}"[:4000])
                    if not self._running[kind].isActive:
                        self._running[kind] = start_with_retries(self._writers[kind])
        return {"reports": reports, "failures": failures}

    def stop(self) -> None:
        for query in self._running.values():
            query.stop()


def main(root: Path, kinds: list[str]) -> None:
    register()
    conf = {
        "spark.slackwater.location": str(root / "slackwater"),
        "spark.slackwater.shards": "2",
        # nothing happens between the answer and the next rows, so the checkpoint can be read in between
        "spark.sql.streaming.noDataProgressEventInterval": "1h",
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.streaming.pollingDelay": "100ms",
        "spark.sql.shuffle.partitions": "2",
    }
    os.environ.setdefault("MASTER", "local[4,4]")  # a task whose worker was killed runs again
    with local_session("soak", **conf) as spark:
        queries = Queries(spark, root, kinds)
        for line in sys.stdin:
            if line.strip() == "stop":
                break
            print(json.dumps(queries.settle()), flush=True)
        queries.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
