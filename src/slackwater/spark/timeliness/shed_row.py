"""The shed ratio inside a plan, read again in every micro-batch."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.mailbox import Mailbox


class Shed(IntEnum):
    """Positions in the shed row."""

    RATIO = 0
    NOW_US = 1


def shed_row(spark: SparkSession, mailbox: Mailbox) -> Column:
    """The shed ratio of this micro-batch and the current time, as an array column; index it by ``Shed``.

    It is an array for the same reason as the control row of a completeness promise.
    """
    ratio, now = F.col("value").cast("double"), F.unix_micros(F.current_timestamp()).cast("double")
    return one_line(spark, mailbox.shed_path).select(F.concat(F.array(ratio), F.array(now))).scalar()
