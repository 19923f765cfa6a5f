"""The control row inside a plan: what judges, counts and samples the rows of this micro-batch."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.completeness.control_lines import ControlLines
from slackwater.spark.runtime.driver_lines import asks_driver, line_frame
from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.control_line import UNKNOWN_US, WIDTH, ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile
from slackwater.spark.worker.mailbox import Mailbox


class Control(IntEnum):
    """Positions in the control row, all in microseconds: the fields of ``ControlLine``, and the time now."""

    HEARTBEAT = 0
    REFERENCE = 1
    SAMPLE_FROM = 2
    CHOSEN_AT = 3
    DECIDED_AT = 4
    BEHIND = 5
    WAIT = 6
    CEILING = 7
    NOW = 8


def control_row(spark: SparkSession, mailbox: Mailbox, *, follows_rows: bool = False) -> Column:
    """The control row of a promise as an array column, fresh in every micro-batch; index it by ``Control``.

    ``follows_rows``: the rows of the plan can raise the heartbeat, and do if the query has no other promise.

    The driver is asked for the line of the query where that is possible. Where it is not, every micro-batch reads the
    promise's file, which needs a job and suits one query at a time. All mentions of the result in one plan see the same
    numbers.

    It is an array because a number that changes with the micro-batch would become a literal in the generated code, and
    Spark would compile that code again every time. Elements of an array are data. The current time is in the row for
    the same reason.
    """
    if asks_driver(spark):
        lines = ControlLines(spark, mailbox, follows_rows)
        return line_frame(spark, lines.text_for).select(F.array(*_numbers(), _number(Control.NOW))).scalar()
    file = ControlRowFile(mailbox.folder)
    file.create()
    # An array of its own: beside other elements the current time would be a literal in the generated code.
    now = F.array(F.unix_micros(F.current_timestamp()))
    return one_line(spark, file.path).select(F.concat(F.array(*_numbers()), now)).scalar()


def _numbers() -> list[Column]:
    return [_number(position) for position in Control if position is not Control.NOW]


def _number(position: Control) -> Column:
    return F.substring("value", ControlLine.position(position), WIDTH).cast("bigint")


def known(us: Column) -> Column:
    """A time of the control row; null while it is not known."""
    return F.when(us > F.lit(UNKNOWN_US), us)
