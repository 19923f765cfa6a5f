"""The shed ratio and the threshold of utility inside a plan, read again in every micro-batch."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.mailbox import Mailbox


class Shed(IntEnum):
    """Positions in the shed row."""

    NOW_US = 0
    RATIO = 1
    CELL = 2
    KEEP = 3
    LEAST = 4


def shed_row(spark: SparkSession, mailbox: Mailbox) -> Column:
    """The current time, the shed ratio of this micro-batch and its threshold, as an array column indexed by ``Shed``.

    It is an array for the same reason as the control row of a completeness promise.
    """
    now = F.unix_micros(F.current_timestamp()).cast("double")
    numbers = F.split("value", " ").cast("array<double>")
    return one_line(spark, mailbox.shed_path).select(F.concat(F.array(now), numbers)).scalar()
