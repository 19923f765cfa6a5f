"""Load: what grows while a promise is kept for long, and what a batch costs with many sources, many keys, one row.

``day``: a day's stream as fast as it can be read, a simulated minute in each micro-batch, back to back. Every
``--every`` micro-batches it notes processor time, memory of each process (of Java also the live heap after a
collection), and the bytes and files of checkpoint and promise. What is flat, is flat between the second quarter and the
last one. ``sources``, ``keys`` and ``one`` run the same query under a promise and under plain ``withWatermark``, in
turns, and compare the processor time of a micro-batch with growing numbers of sources and keys, and with one row.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from processor_time import processor_time_s
from slackwater.spark.command.session import local_session

START_MS = 1_767_225_600_000
MINUTE_MS = 60_000
DAY_BATCHES = 1440
_SESSION = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
Promise = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured after a number of micro-batches; processor time and duration are of one micro-batch."""

    batches: int
    processor_ms: float
    duration_ms: float
    rss_mb: dict[str, float]
    open_files: dict[str, int]
    live_heap_mb: float
    checkpoint_kb: float
    checkpoint_files: int
    promise_kb: float
    promise_files: int
    state_rows: int


def events(spark: SparkSession, rows: int, keys: int, sources: int) -> DataFrame:
    """A simulated minute in each micro-batch: exponential lateness of two seconds, all drawn from the row's number."""
    read = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2)
    minutes = read.option("startTimestamp", START_MS).option("advanceMillisPerBatch", MINUTE_MS).load()
    u, v = ((F.pmod(F.xxhash64("value", F.lit(n)), F.lit(1_000_000)) + 1) / 1_000_001.0 for n in (1, 2))
    arrived_us = F.unix_micros("timestamp") + (u * MINUTE_MS * 1000).cast("long")
    return minutes.select(
        F.timestamp_micros(arrived_us).alias("arrived"),
        F.timestamp_micros(arrived_us + (F.log(v) * 2_000_000).cast("long")).alias("ts"),
        F.pmod(F.xxhash64("value", F.lit(3)), F.lit(keys)).alias("key"),
        F.concat(F.lit("source-"), F.pmod(F.col("value"), F.lit(sources))).alias("source"),
        F.col("value").cast("double").alias("amount"),
    )


def counted(promised: DataFrame) -> DataFrame:
    """Windows of a minute per key."""
    windows = promised.groupBy(F.window("ts", "1 minute"), "key")
    return windows.agg(F.count("*").alias("n"), F.sum("amount").alias("total"))


def plain(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("ts", "20 seconds")


def promised(name: str, **options: Any) -> Promise:
    return lambda frame: sw.with_drop_ratio(frame, "ts", "1%", arrival="arrived", name=name, **options)


class Load:
    """A query that runs back to back, and what its processes use."""

    def __init__(self, spark: SparkSession, result: DataFrame, folder: Path) -> None:
        self._spark = spark
        self._checkpoint, self._location = folder / "checkpoint", folder / "promises"
        writer = result.writeStream.format("noop").outputMode("append")
        self.query: StreamingQuery = writer.option("checkpointLocation", str(self._checkpoint)).start()
        self._last, self._processor_s = 0, processor_time_s(os.getpid())
        self._durations: dict[int, float] = {}

    def sample(self, after: int) -> Sample:
        """Wait until so many micro-batches are committed, and measure."""
        while (batches := self._committed()) < after:
            failure = self.query.exception()
            if failure is not None:
                raise failure
            time.sleep(0.2)
        processor_s = processor_time_s(os.getpid())
        steps = batches - self._last
        durations = [self._durations[number] for number in range(self._last, batches) if number in self._durations]
        rss_mb, open_files = _usage(os.getpid())
        checkpoint, promise = _size(self._checkpoint), _size(self._location)
        sample = Sample(
            batches,
            (processor_s - self._processor_s) * 1000 / steps,
            statistics.median(durations),
            rss_mb,
            open_files,
            self._live_heap_mb(),
            checkpoint[0],
            checkpoint[1],
            promise[0],
            promise[1],
            sum(operator["numRowsTotal"] for operator in self.query.lastProgress["stateOperators"]),
        )
        self._last, self._processor_s = self._committed(), processor_time_s(os.getpid())
        return sample

    def _committed(self) -> int:
        for progress in self.query.recentProgress:
            self._durations[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
        return max(self._durations, default=-1) + 1

    def _live_heap_mb(self) -> float:
        session: Any = self._spark
        runtime = session._jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def day(options: argparse.Namespace) -> dict[str, Any]:
    """A day's stream, back to back."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        settings = {**_SESSION, "spark.slackwater.location": str(folder / "promises")}
        with local_session("load", **settings) as spark:
            made = counted(promised("load")(events(spark, options.rows, 1000, 10)))
            began = time.monotonic()
            load = Load(spark, made, folder)
            samples = []
            for after in range(options.every, options.batches + 1, options.every):
                samples.append(load.sample(after))
                print(json.dumps(asdict(samples[-1])), flush=True)
            took_s = time.monotonic() - began
            ledger = sw.report(load.query).ledger.as_json()
            load.query.stop()
    return {
        "rows_per_batch": options.rows,
        "took_s": took_s,
        "simulated_hours": samples[-1].batches / 60,
        "ledger": ledger,
        "growth": _growth(samples),
        "samples": [asdict(sample) for sample in samples],
    }


def _growth(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """Medians of the second quarter and of the last one."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    figures: dict[str, Callable[[Sample], float]] = {
        "processor time of a micro-batch (ms)": lambda s: s.processor_ms,
        "duration of a micro-batch (ms)": lambda s: s.duration_ms,
        "live heap of Java (MB)": lambda s: s.live_heap_mb,
        "memory of Java (MB)": lambda s: s.rss_mb["jvm"],
        "memory of the driver's Python (MB)": lambda s: s.rss_mb["driver"],
        "memory of the heartbeat's process (MB)": lambda s: s.rss_mb["heartbeat"],
        "open files": lambda s: sum(s.open_files.values()),
        "checkpoint (KB)": lambda s: s.checkpoint_kb,
        "files of the checkpoint": lambda s: s.checkpoint_files,
        "folder of the promise (KB)": lambda s: s.promise_kb,
        "rows of state": lambda s: s.state_rows,
    }
    return {name: (statistics.median(map(of, early)), statistics.median(map(of, late))) for name, of in figures.items()}


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Processor time of a micro-batch under a promise, over that of plain Spark, in turns."""
    found = []
    for number in options.numbers:
        rows = 1 if options.what == "one" else options.rows
        keys = number if options.what == "keys" else 100
        sources = number if options.what == "sources" else 1
        under = promised("load", **({"source": "source"} if options.what == "sources" else {}))
        costs: dict[str, list[float]] = {"plain": [], "promised": []}
        durations: dict[str, list[float]] = {"plain": [], "promised": []}
        pair: list[tuple[str, Promise]] = [("plain", plain), ("promised", under)]
        if not found:
            _run(rows, keys, sources, under, options)  # warms Java up
        for turn in range(options.rounds):
            for name, promise in pair if turn % 2 else reversed(pair):
                sample = _run(rows, keys, sources, promise, options)
                costs[name].append(sample.processor_ms)
                durations[name].append(sample.duration_ms)
        ratios = [b / a for a, b in zip(costs["plain"], costs["promised"], strict=True)]
        found.append(
            {
                options.what: number,
                "rows_per_batch": rows,
                "processor_ms": costs,
                "duration_ms": durations,
                "processor_ratio": statistics.median(ratios),
                "processor_ratios": ratios,
            }
        )
        print(json.dumps(found[-1]), flush=True)
    return {"what": options.what, "batches": options.batches, "figures": found}


def _run(rows: int, keys: int, sources: int, promise: Promise, options: argparse.Namespace) -> Sample:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        settings = {**_SESSION, "spark.slackwater.location": str(folder / "promises")}
        with local_session("load", **settings) as spark:
            load = Load(spark, counted(promise(events(spark, rows, keys, sources))), folder)
            load.sample(options.warm_up)
            sample = load.sample(options.warm_up + options.batches)
            load.query.stop()
    return sample


def _usage(root: int) -> tuple[dict[str, float], dict[str, int]]:
    """Resident memory in MB and open files of a process and its descendants, by what they are."""
    rss_mb: dict[str, float] = {}
    files: dict[str, int] = {}
    family = {root}
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        pid = int(path.name)
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if pid != root and parent not in family:
                continue
            family.add(pid)
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            role = "driver" if pid == root else "heartbeat" if "source_runner" in line else "other"
            role = "jvm" if "java" in line.split(" ")[0] else role
            pages = int((path / "statm").read_text().split()[1])
            rss_mb[role] = rss_mb.get(role, 0.0) + pages * os.sysconf("SC_PAGE_SIZE") / 2**20
            files[role] = files.get(role, 0) + sum(1 for _ in (path / "fd").iterdir())
        except OSError:
            continue  # the process has just ended
    return rss_mb, files


def _size(folder: Path) -> tuple[float, int]:
    """KB and files below a folder, some of which may vanish meanwhile."""
    sizes = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                sizes.append(path.stat().st_size)
        except OSError:
            continue
    return sum(sizes) / 1024, len(sizes)


def _without(words: list[str], *names: str) -> list[str]:
    """Arguments without these options and their values."""
    return [word for i, word in enumerate(words) if word not in names and (i == 0 or words[i - 1] not in names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["day", "sources", "keys", "one"])
    parser.add_argument("--rows", type=int, default=10_000, help="rows per micro-batch")
    parser.add_argument("--batches", type=int, help="micro-batches to measure (day: 1440, else 20)")
    parser.add_argument("--every", type=int, default=20, help="of a day: micro-batches between two samples")
    parser.add_argument("--numbers", type=int, nargs="+", default=[], help="of sources or of keys")
    parser.add_argument("--warm-up", type=int, default=20, help="micro-batches that do not count")
    parser.add_argument("--rounds", type=int, default=2, help="pairs of a plain and a promised run")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--machine", default="noisy", help="what the results say of the machine: noisy or quiet")
    options = parser.parse_args()
    options.words = _without(sys.argv[1:], "--json", "--machine")
    if options.what == "day":
        options.batches = options.batches or DAY_BATCHES
        found = day(options)
    else:
        options.batches = options.batches or 20
        options.numbers = (
            options.numbers or {"sources": [1, 100, 10_000], "keys": [1000, 1_000_000], "one": [1]}[options.what]
        )
        found = compare(options)
    if options.json:
        command = f"python benchmarks/load.py {' '.join(options.words)}"
        about = {
            "command": command,
            "date": time.strftime("%Y-%m-%d"),
            "cores": os.cpu_count(),
            "machine": options.machine,
        }
        Path(options.json).write_text(json.dumps({**about, **found}, indent=1) + "\n")
    print(json.dumps({name: value for name, value in found.items() if name != "samples"}, indent=1))


if __name__ == "__main__":
    main()
