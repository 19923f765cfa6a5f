"""The control row inside a plan: what judges, places and sheds the rows of this micro-batch, read anew in each."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.runtime.one_line import one_line
from slackwater.spark.worker.mailbox import UNKNOWN_US, Mailbox

CONTROL_PREFIX = "slackwater-control:"


def control_row(spark: SparkSession, mailbox: Mailbox, name: str) -> Column:
    """As an array: the heartbeat that judges this micro-batch, what its rows are placed by, now, where thinning begins.

    All in microseconds. Rows are placed by the heartbeat, or before it by the clock as last heard. Each of these two is
    null while it is not known. What places and thins them is also observed, under the promise's ``name``: there is one
    row here, and as a column it would cost every row. Every mention of the result is planned anew in each micro-batch
    (some 10 ms): mention it once, as a column.

    An array, since a number that changes with the micro-batch would stand in the generated code, which Spark would
    compile, and Java warm up, anew for each; what comes out of an array is data. For the same reason now is no
    ``current_timestamp()`` in the rows' own plan.
    """
    judge, reference, thin_from = (F.substring("value", first, 20).cast("bigint") for first in (1, 22, 43))
    known = (F.when(us > F.lit(UNKNOWN_US), us) for us in (judge, reference))
    row = F.concat(F.array(*known), F.array(F.unix_micros(F.current_timestamp())), F.array(thin_from))
    line = one_line(spark, mailbox.control_path).select(row.alias("row"))
    placed_by = [F.first(F.col("row")[1]).alias("reference_us"), F.first(F.col("row")[3]).alias("sample_from_us")]
    return line.observe(CONTROL_PREFIX + name, *placed_by).scalar()
