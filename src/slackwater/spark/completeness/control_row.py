"""The control row inside a plan: what judges, counts and samples the rows of this micro-batch."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.control_line import UNKNOWN_US, WIDTH, ControlLine
from slackwater.spark.worker.mailbox import Mailbox

CONTROL_PREFIX = "slackwater-control:"


class Control(IntEnum):
    """Positions in the control row, all times in microseconds.

    ``HEARTBEAT``, ``REFERENCE`` and ``CHOSEN_AT`` are null while they are not known.
    """

    HEARTBEAT = 0
    REFERENCE = 1
    NOW = 2
    SAMPLE_FROM = 3
    CHOSEN_AT = 4


def control_row(spark: SparkSession, mailbox: Mailbox, name: str) -> Column:
    """The control row of a promise as an array column, read again in every micro-batch; index it by ``Control``.

    All but the heartbeat and the current time are also observed, under the promise's ``name``. Each mention of the
    result is planned again in every micro-batch, some 10 ms each: mention it once, as a column.

    It is an array because a number that changes with the micro-batch would become a literal in the generated code, and
    Spark would compile that code again every time. Elements of an array are data. The current time is in the row for
    the same reason.
    """
    known = F.array(*(_known(_number(field)) for field in ("heartbeat_us", "reference_us")))
    # An array of its own: beside other elements the current time would be a literal in the generated code.
    now = F.array(F.unix_micros(F.current_timestamp()))
    row = F.concat(known, now, F.array(_number("sample_from_us"), _known(_number("chosen_at_us"))))
    line = one_line(spark, mailbox.control_path).select(row.alias("row"))
    observed = line.observe(
        CONTROL_PREFIX + name,
        F.first(F.col("row")[Control.REFERENCE]).alias("reference_us"),
        F.first(F.col("row")[Control.SAMPLE_FROM]).alias("sample_from_us"),
        F.first(F.col("row")[Control.CHOSEN_AT]).alias("chosen_at_us"),
    )
    return observed.scalar()


def _number(field: str) -> Column:
    return F.substring("value", ControlLine.position(field), WIDTH).cast("bigint")


def _known(us: Column) -> Column:
    return F.when(us > F.lit(UNKNOWN_US), us)
