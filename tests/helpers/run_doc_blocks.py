"""Runs the Python blocks of documentation pages in one Spark session, each page in a folder that it finds prepared.

``python -m tests.helpers.run_doc_blocks PAGE …`` in an empty folder; prints one JSON line per page: its error, or null.
The folder is that of the process, because Spark resolves relative paths against it.
"""

from __future__ import annotations

import doctest
import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.spark.command.recording import recorded_readings, write_recording
from tests.helpers.doc_blocks import ROOT, blocks_of

SCHEMA = (
    "ts TIMESTAMP, seen TIMESTAMP, arrived TIMESTAMP, sensor STRING, floor INT, value DOUBLE, x DOUBLE, "
    "priority DOUBLE, amount DOUBLE, urgency DOUBLE, symbol STRING, price DOUBLE, shop STRING, kind STRING"
)


def prepare() -> None:
    """Write what the pages read: ``in/``, ``holdings`` and ``readings.parquet``."""
    for path in Path().iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    Path("in").mkdir()
    for number in range(3):
        Path(f"in/{number}.json").write_text("".join(_row(30 * number + second) for second in range(30)))
    Path("holdings").mkdir()
    names = {"portfolio": ["a", "a", "b"], "symbol": ["S0", "S1", "S2"], "weight": [1.0, 2.0, 3.0]}
    pd.DataFrame(names).to_parquet("holdings/holdings.parquet")
    Path("checkpoints").mkdir()
    write_recording(Path("readings.parquet"), recorded_readings(2_000, 100, 6, seed=0))
    _walks("symbol", "close").assign(price=lambda walk: walk["close"]).to_parquet("prices.parquet")
    _walks("station", "temp").to_parquet("air.parquet")
    Path("places.csv").write_text("sensor,place\ns0,attic\ns1,cellar\n")
    Path("places.sql").write_text(
        "SELECT place, COUNT(*) AS n FROM Sensors [RANGE 10 seconds SLIDE 10 seconds WATTR ts DRATIO 1%] "
        "JOIN Places USING (sensor) GROUP BY place"
    )
    Path("worth.sql").write_text(
        "SELECT portfolio, SUM(weight * price) AS worth FROM Prices JOIN Holdings USING (symbol) "
        "GROUP BY portfolio WITHIN 1% CONFIDENCE 90%"
    )
    Path("mean.sql").write_text("SELECT AVG(value) FROM Sensors WITHIN 2 CONFIDENCE 95%")


def _walks(key: str, value: str) -> pd.DataFrame:
    """Twelve random walks with a row per minute."""
    draw = np.random.default_rng(0)
    at = pd.Timestamp("2026-01-05 08:00", tz="UTC") + pd.to_timedelta(np.arange(600), unit="min")
    walks = [
        pd.DataFrame({key: f"S{n}", "ts": at.as_unit("us"), value: 100 + np.cumsum(draw.standard_normal(600))})
        for n in range(12)
    ]
    return pd.concat(walks).sort_values("ts", ignore_index=True)


def _row(second: int) -> str:
    at = f"2026-01-05T08:{second // 60:02d}:{second % 60:02d}Z"
    numbers = dict.fromkeys(("value", "x", "priority", "amount", "urgency", "price"), 1.0 + second % 7)
    names = {"sensor": f"s{second % 4}", "floor": second % 4, "symbol": f"S{second % 3}", "shop": "north"}
    return json.dumps({"ts": at, "seen": at, "arrived": at, **names, "kind": "order", **numbers}) + "\n"


def names_for(spark: SparkSession) -> dict[str, Any]:
    """The names that pages use without making them: streams of their own, and queries over them."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json("in")
    sw.stream("Sensors", rows, key="sensor", event_time="ts", value="value")
    spark.read.parquet("holdings").createOrReplaceTempView("Holdings")
    window = "RANGE 10 seconds SLIDE 10 seconds DRATIO 1% LATE {}"
    panes = f"SELECT sensor, MAX(value) AS peak FROM Sensors [{window}] GROUP BY sensor"
    _run_to_the_end(sw.sql(spark, panes.format("PANES")), "out")
    streams = dict.fromkeys(("events", "values", "prices", "orders", "clicks"), rows)
    return {
        "F": F,
        "sw": sw,
        "spark": spark,
        "schema": SCHEMA,
        **streams,
        "peaks": sw.sql(spark, panes.format("ROWS")),
        "query": _started(sw.with_max_delay(rows, "2 seconds", name="running")),
    }


def _run_to_the_end(results: Any, path: str) -> None:
    writer = results.writeStream.format("parquet").option("path", path).option("checkpointLocation", f".{path}")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def _started(rows: Any) -> Any:
    query = rows.writeStream.format("noop").option("checkpointLocation", ".running").start()
    query.processAllAvailable()
    return query


def run_page(spark: SparkSession, page: Path) -> None:
    """Run the blocks of a page one after the other, and its queries until they have read everything."""
    prepare()
    blocks = list(blocks_of(page))
    for block in blocks:
        if block.language == "sql":
            Path("peaks.sql").write_text(block.text)
            break
    names = names_for(spark.newSession())
    for block in blocks:
        if block.language != "python" or not block.is_run:
            continue
        if block.text.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block.text, names, block.page, block.page, block.line)
            failed = doctest.DocTestRunner(verbose=False).run(example).failed
            assert not failed, f"{block.page}:{block.line} gives another result"
        else:
            exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), names)
        for query in spark.streams.active:
            query.processAllAvailable()
    for served in names.values():
        if hasattr(served, "close") and hasattr(served, "url"):
            served.close()


def main() -> None:
    """Run the pages that are named on the command line."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    with builder.config("spark.driver.host", "127.0.0.1").getOrCreate() as spark:
        spark.sparkContext.setLogLevel("OFF")
        for name in sys.argv[1:]:
            error = None
            try:
                run_page(spark, ROOT / name)
            except BaseException:
                error = traceback.format_exc()
            for query in spark.streams.active:
                query.stop()
            print("\n" + json.dumps({"page": name, "error": error}), flush=True)


if __name__ == "__main__":
    main()
