"""The control row inside a plan: what judges, counts and samples the rows of this micro-batch."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.driver_rows import driver_rows
from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.control_line import UNKNOWN_US, WIDTH, ControlLine
from slackwater.spark.worker.mailbox import Mailbox


class Control(IntEnum):
    """Positions in the control row, all times in microseconds: the fields of ``ControlLine``, and the time now."""

    HEARTBEAT = 0
    REFERENCE = 1
    SAMPLE_FROM = 2
    CHOSEN_AT = 3
    DECIDED_AT = 4
    NOW = 5


def control_row(spark: SparkSession, mailbox: Mailbox) -> Column:
    """The control row of a promise as an array column, fresh in every micro-batch; index it by ``Control``.

    The driver keeps it where it can. Where it cannot, every micro-batch reads the file, which needs a job. All mentions
    of the result in one plan see the same numbers, because Spark evaluates equal subqueries once.

    It is an array because a number that changes with the micro-batch would become a literal in the generated code, and
    Spark would compile that code again every time. Elements of an array are data. The current time is in the row for
    the same reason.
    """
    rows = driver_rows(spark)
    if rows is not None:
        return rows.load(mailbox).scalar()
    numbers = (
        F.substring("value", ControlLine.position(field), WIDTH).cast("bigint")
        for field in ("heartbeat_us", "reference_us", "sample_from_us", "chosen_at_us", "decided_at_us")
    )
    # An array of its own: beside other elements the current time would be a literal in the generated code.
    now = F.array(F.unix_micros(F.current_timestamp()))
    return one_line(spark, mailbox.control_path).select(F.concat(F.array(*numbers), now)).scalar()


def known(us: Column) -> Column:
    """A time of the control row; null while it is not known."""
    return F.when(us > F.lit(UNKNOWN_US), us)
