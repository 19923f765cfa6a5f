"""``filter_costs`` on real Spark. No test asserts how long a step took."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.errors import InvalidOption, InvalidStream

pytestmark = pytest.mark.spark


def recorded(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, 2).select("id", F.when(F.col("id") % 5 != 0, F.col("id") % 4).alias("kind"))


def test_the_cheaper_place_is_named(spark: SparkSession) -> None:
    costs = sw.filter_costs(recorded(spark), "kind = 1 AND length(string(id)) > 0")
    assert costs.pass_ratio == recorded(spark).where("kind = 1").count() / 2000
    # a step counts as 100 µs at most
    assert 0 <= costs.filter_ns <= 100_000 and 0 <= costs.shedding_ns <= 100_000
    assert 0 <= costs.first_up_to <= 1
    assert str(costs).startswith("kind = 1 AND length(string(id)) > 0: ") and "20% pass" in str(costs)


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("of_python(kind) = 1", "wrong-where"),
        ("kind = (SELECT 1)", "wrong-where"),
        ("kind = 1 ORDER BY id", "wrong-where"),
        ("kind =", "wrong-where"),
        ("nothing = 1", "wrong-where"),
    ],
)
def test_what_cannot_be_measured_is_refused(spark: SparkSession, where: str, condition: str) -> None:
    spark.udf.register("of_python", lambda kind: kind, "int")
    with pytest.raises((InvalidOption, InvalidStream), match=rf"\[{condition}\]"):
        sw.filter_costs(recorded(spark), where)


def test_streams_and_no_rows_are_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidStream, match=r"\[no-rows\]"):
        sw.filter_costs(recorded(spark).where("id < 0"), "kind = 1")
    with pytest.raises(InvalidStream, match=r"\[not-a-batch\]"):
        sw.filter_costs(spark.readStream.format("rate").load(), "value = 1")
