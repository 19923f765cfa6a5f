"""Sensors with bad clocks: one is stuck in 1970, one lives in 2099, one falls behind; windows close all the same.

python examples/sensors_with_bad_clocks.py            # a minute
python examples/sensors_with_bad_clocks.py --short    # some seconds
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw

SCHEMA = "sensor STRING, ts TIMESTAMP, seen TIMESTAMP, value DOUBLE"


def readings(files: int, seed: int = 1) -> Iterator[pd.DataFrame]:
    """Ten seconds of twenty sensors a file, in order of arrival."""
    draw = np.random.default_rng(seed)
    start = pd.Timestamp("2026-03-01 12:00", tz="UTC")
    for number in range(files):
        rows = 2_000
        seen = start + pd.to_timedelta(np.sort(draw.uniform(10 * number, 10 * number + 10, rows)), unit="s")
        sensor = draw.integers(0, 20, rows)
        late_s = draw.lognormal(-1.0, 0.8, rows)
        late_s[sensor == 3] += 0.2 * number  # this clock runs slow, and slower
        ts = pd.Series(seen - pd.to_timedelta(late_s, unit="s"))
        ts[sensor == 7] = pd.Timestamp("1970-01-01 00:00:07", tz="UTC")
        ts[(sensor == 9) & (draw.random(rows) < 0.1)] = pd.Timestamp("2099-12-31", tz="UTC")
        names = [f"sensor-{i}" for i in sensor]
        yield pd.DataFrame({"sensor": names, "ts": ts, "seen": seen, "value": draw.normal(20, 2, rows)})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--short", action="store_true")
    files = 6 if options.parse_args().short else 60
    spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with tempfile.TemporaryDirectory() as folder:
        arriving = Path(folder, "in")
        arriving.mkdir()
        for number, file in enumerate(readings(files)):
            file.to_json(
                arriving / f"{number:04d}.json", orient="records", lines=True, date_format="iso", date_unit="us"
            )
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(arriving))

        events = sw.with_drop_ratio(events, "ts", "1%", arrival="seen", source="sensor", name="sensors")

        peaks = events.groupBy(F.window("ts", "10 seconds"), "sensor").agg(F.max("value").alias("peak"))
        query = (
            peaks.writeStream.outputMode("append")
            .format("memory")
            .queryName("peaks")
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .start()
        )
        query.processAllAvailable()
        report = sw.report(query)
        query.stop()
        print(report)
        windows = spark.table("peaks").select("window").distinct().count()
        ledger = report.completeness[0].ledger
        print(f"{windows} windows closed; {ledger.invalid:,} rows had a clock that cannot be meant, and moved nothing")
    spark.stop()


if __name__ == "__main__":
    main()
