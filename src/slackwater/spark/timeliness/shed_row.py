"""The shed ratio and the threshold of utility inside a plan, read again in every micro-batch."""

from __future__ import annotations

from enum import IntEnum
from functools import partial

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.driver_lines import PlannedBatch, asks_driver, line_frame
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

    The driver is asked for it where that is possible. Where it is not, every micro-batch reads the promise's file,
    which needs a job. It is an array for the same reason as the control row of a completeness promise.
    """
    # A damaged file must not fail the query: what is no number is null, and with a null nothing is shed.
    numbers = F.split("value", " ").try_cast("array<double>")
    if asks_driver(spark):
        return line_frame(spark, partial(_text_for, mailbox)).select(numbers).scalar()
    now = F.unix_micros(F.current_timestamp()).cast("double")
    return one_line(spark, mailbox.shed_path).select(F.concat(F.array(now), numbers)).scalar()


def _text_for(mailbox: Mailbox, planned: PlannedBatch | None) -> str:
    """The time at which a micro-batch is planned, and the shed row in force; without a row nothing is shed."""
    return f"{0 if planned is None else planned.at_us} {mailbox.read_shed_row() or ''}".strip()
