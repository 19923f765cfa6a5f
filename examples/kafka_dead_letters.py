"""Kafka: a topic under a promise; late messages, and those that are no rows, go to a topic of dead letters.

The program needs a broker. It writes readings to one topic, reads them under a promise as a scheduled job would, and
writes what is late or invalid to another topic, with the place from which it came.

python examples/kafka_dead_letters.py localhost:9092            # one minute
python examples/kafka_dead_letters.py localhost:9092 --short    # some seconds
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
SCHEMA = "device STRING, ts TIMESTAMP, value DOUBLE"


def write_readings(spark: SparkSession, broker: str, topic: str, chunks: int, rows: int = 500) -> None:
    """Readings of now; one in a hundred is minutes late, one is no JSON, and one is a tombstone."""
    draw = np.random.default_rng(1)
    for _ in range(chunks):
        late_s = draw.lognormal(-2.0, 0.8, rows) + np.where(draw.random(rows) < 0.01, 300.0, 0.0)
        ts = pd.Timestamp(time.time(), unit="s", tz="UTC") - pd.to_timedelta(late_s, unit="s")
        readings = pd.DataFrame({"device": [f"device-{i}" for i in draw.integers(0, 20, rows)], "ts": ts})
        readings["value"] = draw.normal(20, 2, rows)
        values = [str(line) for line in readings.to_json(orient="records", lines=True, date_format="iso").splitlines()]
        messages = spark.createDataFrame([(v,) for v in [*values, "no JSON", None]], "value STRING")
        messages.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()


def read_readings(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    """The messages as rows. A value that is no row has null in every column of the schema, and is kept as it came."""
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 2_000)
        .load()
        .withColumn("value", F.col("value").cast("string"))
    )
    row = F.from_json("value", SCHEMA).alias("row")
    return messages.select(row, F.col("value").alias("message"), "topic", "partition", "offset", "timestamp").select(
        "row.*", "message", "topic", "partition", "offset", "timestamp"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("broker", help="host:port")
    parser.add_argument("--jars", help="jars of Spark's Kafka connector; else they are downloaded")
    parser.add_argument("--short", action="store_true", help="write fewer messages")
    given = parser.parse_args()
    connector = {"spark.jars": given.jars} if given.jars else {"spark.jars.packages": CONNECTOR}
    builder = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config(map=connector).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    topic, dead = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("readings", "dead-letters"))
    write_readings(spark, given.broker, topic, chunks=20 if given.short else 100)

    events = read_readings(spark, given.broker, topic)
    events = sw.with_drop_ratio(events, "ts", "2%", arrival="timestamp", late="problem", name="readings")

    with tempfile.TemporaryDirectory() as folder:

        def deliver(batch: DataFrame, number: int) -> None:
            batch.persist()  # both writes need the rows
            good = batch.where("problem IS NULL").drop("problem", "message")
            good.write.mode("overwrite").parquet(f"{folder}/readings/batch={number}")
            letter = F.to_json(F.struct("problem", "topic", "partition", "offset", "message")).alias("value")
            letters = batch.where("problem IS NOT NULL").select(letter)
            letters.write.format("kafka").option("kafka.bootstrap.servers", given.broker).option("topic", dead).save()
            batch.unpersist()

        query = (
            events.writeStream.foreachBatch(deliver)
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(sw.report(query))
        print(f"{spark.read.parquet(f'{folder}/readings').count():,} rows on time")
    where = {"kafka.bootstrap.servers": given.broker, "subscribe": dead}
    letter = F.from_json(F.col("value").cast("string"), "problem STRING").alias("letter")
    letters = spark.read.format("kafka").options(**where).load().select(letter)
    letters.groupBy("letter.problem").count().orderBy("problem").show()
    spark.stop()


if __name__ == "__main__":
    main()
