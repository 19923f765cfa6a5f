"""Dead letters: late rows and rows with impossible clocks go to a folder of their own, each with its reason.

The program works like a scheduled job: it processes what is there, in micro-batches of one file, and ends.

python examples/dead_letters.py            # one minute
python examples/dead_letters.py --short    # some seconds
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

SCHEMA = "device STRING, ts TIMESTAMP, seen TIMESTAMP, value DOUBLE"


def readings(files: int, seed: int = 1) -> Iterator[pd.DataFrame]:
    """One frame per ten seconds, in arrival order; one row in a hundred is late by minutes, some clocks are broken."""
    draw = np.random.default_rng(seed)
    start = pd.Timestamp("2026-03-01 12:00", tz="UTC")
    for number in range(files):
        rows = 2_000
        seen = start + pd.to_timedelta(np.sort(draw.uniform(10 * number, 10 * number + 10, rows)), unit="s")
        late_s = draw.lognormal(-1.0, 0.8, rows) + np.where(draw.random(rows) < 0.01, 300.0, 0.0)
        ts = pd.Series(seen - pd.to_timedelta(late_s, unit="s"))
        broken = draw.random(rows)
        ts[broken < 0.002] = pd.Timestamp("1970-01-01 00:00:07", tz="UTC")
        ts[broken > 0.998] = pd.Timestamp("2099-12-31", tz="UTC")
        devices = [f"device-{i}" for i in draw.integers(0, 20, rows)]
        yield pd.DataFrame({"device": devices, "ts": ts, "seen": seen, "value": draw.normal(20, 2, rows)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="read four minutes of data instead of ten")
    files = 24 if parser.parse_args().short else 60
    spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with tempfile.TemporaryDirectory() as folder:
        inbox, good, dead = Path(folder, "in"), f"{folder}/readings", f"{folder}/dead_letters"
        inbox.mkdir()
        for number, file in enumerate(readings(files)):
            file.to_json(inbox / f"{number:04d}.json", orient="records", lines=True, date_format="iso", date_unit="us")
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox))

        events = sw.with_drop_ratio(events, "ts", "2%", arrival="seen", late="problem", name="devices")

        def deliver(batch: DataFrame, number: int) -> None:
            batch.persist()  # both writes need the rows
            batch.where("problem IS NULL").drop("problem").write.mode("overwrite").parquet(f"{good}/batch={number}")
            batch.where("problem IS NOT NULL").write.mode("overwrite").parquet(f"{dead}/batch={number}")
            batch.unpersist()

        query = (
            events.writeStream.foreachBatch(deliver)
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(sw.report(query))
        spark.read.parquet(dead).groupBy("problem").count().orderBy("problem").show()
        print(f"{spark.read.parquet(good).count():,} rows on time")
    spark.stop()


if __name__ == "__main__":
    main()
