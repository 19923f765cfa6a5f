"""The shed ratio inside a plan, read again in every micro-batch."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.mailbox import Mailbox


def shed_row(spark: SparkSession, mailbox: Mailbox) -> Column:
    """The share of this micro-batch's rows to leave out, and now in microseconds; an array like the control row."""
    ratio, now = F.col("value").cast("double"), F.unix_micros(F.current_timestamp()).cast("double")
    return one_line(spark, mailbox.shed_path).select(F.concat(F.array(ratio), F.array(now))).scalar()
