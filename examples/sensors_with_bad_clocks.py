"""Sensors with bad clocks: one is stuck in 1970, one jumps to 2099, one falls behind. The windows still close on time.

python examples/sensors_with_bad_clocks.py            # one minute
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
    """One frame per ten seconds of twenty sensors, in arrival order."""
    draw = np.random.default_rng(seed)
    start = pd.Timestamp("2026-03-01 12:00", tz="UTC")
    for number in range(files):
        rows = 2_000
        seen = start + pd.to_timedelta(np.sort(draw.uniform(10 * number, 10 * number + 10, rows)), unit="s")
        sensor = draw.integers(0, 20, rows)
        late_s = draw.lognormal(-1.0, 0.8, rows)
        late_s[sensor == 3] += 0.2 * number  # this clock falls further and further behind
        ts = pd.Series(seen - pd.to_timedelta(late_s, unit="s"))
        ts[sensor == 7] = pd.Timestamp("1970-01-01 00:00:07", tz="UTC")
        ts[(sensor == 9) & (draw.random(rows) < 0.1)] = pd.Timestamp("2099-12-31", tz="UTC")
        names = [f"sensor-{i}" for i in sensor]
        yield pd.DataFrame({"sensor": names, "ts": ts, "seen": seen, "value": draw.normal(20, 2, rows)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="read one minute of data instead of ten")
    files = 6 if parser.parse_args().short else 60
    spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder, "in")
        inbox.mkdir()
        for number, file in enumerate(readings(files)):
            file.to_json(inbox / f"{number:04d}.json", orient="records", lines=True, date_format="iso", date_unit="us")
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox))

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
        print(f"{windows} windows closed; {ledger.invalid:,} rows had an impossible event time and moved no watermark")
    spark.stop()


if __name__ == "__main__":
    main()
