"""A bursty web log: when requests arrive faster than they can be counted, the query sheds rows to keep its delay.

    python examples/bursty_web_log.py            # two minutes
    python examples/bursty_web_log.py --short    # about a quarter of a minute

Counts are corrected for the shed rows and come with a standard error.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="stop after 15 seconds")
    parser.add_argument("--watch", action="store_true", help="serve the live page while the query runs")
    options = parser.parse_args()
    spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    page = sw.watch(spark, port=0) if options.watch else None
    if page is not None:
        print("live page:", page.url)

    requests = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 2_000)
        .load()
        # every twentieth second is a burst of forty times the requests
        .withColumn("copies", F.when(F.second("timestamp") % 20 == 0, 40).otherwise(1))
        .withColumn("copy", F.explode(F.sequence(F.lit(1), "copies")))
        .select("timestamp", F.concat(F.lit("/page/"), F.col("value") % 50).alias("path"))
    )

    requests = sw.with_max_delay(requests, "3 seconds", arrival="timestamp", name="fresh")

    # an expensive expression per request: in a burst it cannot keep up
    parsed = requests.withColumn("mark", F.expr("reduce(sequence(1, 400), 0L, (a, i) -> a + hash(path, i) % 7)"))
    hits = parsed.groupBy(F.window("timestamp", "10 seconds"), "path").agg(
        sw.estimated_count().alias("hits"), sw.count_error().alias("hits_error"), F.max("mark").alias("mark")
    )
    with tempfile.TemporaryDirectory() as folder:
        query = (
            hits.writeStream.outputMode("complete")
            .format("memory")
            .queryName("hits")
            .trigger(processingTime="1 second")
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .start()
        )
        while query.isActive and query.lastProgress is None:  # Spark is still starting
            query.awaitTermination(1)
        query.awaitTermination(15 if options.short else 120)
        print(sw.report(query))
        query.stop()
    spark.table("hits").orderBy(F.desc("hits")).select("window.start", "path", "hits", "hits_error").show(5, False)
    if page is not None:
        page.close()
    spark.stop()


if __name__ == "__main__":
    main()
