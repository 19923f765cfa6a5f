"""An option that a query cannot use is refused, with its name, its value and a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pytestmark = pytest.mark.spark


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS id", "'a' AS sensor")


SLIDING = "SELECT sensor, COUNT(*) AS n FROM Refused [RANGE 6 seconds SLIDE 2 seconds] GROUP BY sensor"
PER_ROW = "SELECT COUNT(*) AS n FROM Refused [RANGE 6 seconds]"
STANDING = "SELECT sensor, AVG(id) AS mean FROM Refused GROUP BY sensor WITHIN 0.5 CONFIDENCE 95%"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SLIDING, {"law": "ctrl"}, r"\[option-not-used\] law='ctrl' has no effect without DELAY; leave out law"),
        (SLIDING, {"shards": 4}, r"\[option-not-used\] shards=4 has no effect on windows with SLIDE"),
        (PER_ROW, {"shards": 4}, r"\[option-not-used\] shards=4 has no effect without GROUP BY"),
        ("SELECT * FROM Refused [DRATIO 1%]", {"shards": 4}, r"\[option-not-used\] shards=4 .* without a window"),
        (SLIDING, {"deferral": "dbm"}, r"\[option-not-used\] deferral='dbm' has no effect on a query without WITHIN"),
        (SLIDING, {"shards": 0}, r"\[invalid-shards\] shards=0; use 1 to 1024"),
        (STANDING, {"method": "normal"}, r"\[option-not-used\] method='normal' has no effect on a query with WITHIN"),
        (STANDING, {"law": "ctrl"}, r"\[option-not-used\] law='ctrl' has no effect on a query with WITHIN"),
    ],
)
def test_an_option_that_a_query_cannot_use_is_refused(
    spark: SparkSession, events: DataFrame, text: str, options: dict[str, Any], message: str
) -> None:
    sw.stream("Refused", events, event_time="ts")
    with pytest.raises(sw.InvalidOption, match=message):
        sw.sql(spark, text, **options)


def test_an_option_that_a_window_or_an_order_cannot_use_is_refused(events: DataFrame) -> None:
    sliding = sw.window(events, range="6 seconds", slide="2 seconds", event_time="ts", shards=4)
    with pytest.raises(sw.InvalidOption, match=r"\[option-not-used\] shards=4 has no effect on windows with SLIDE"):
        sliding.agg("COUNT(*) AS n")
    with pytest.raises(sw.InvalidOption, match=r"\[option-not-used\] shards=4 has no effect without per="):
        sw.ordered(events, event_time="ts", drop_ratio=0.01, shards=4)


def test_a_setting_of_shards_is_used_or_refused(spark: SparkSession, events: DataFrame) -> None:
    before = spark.conf.get("spark.slackwater.shards")
    spark.conf.set("spark.slackwater.shards", 5000)
    try:
        sw.ordered(events, event_time="ts", drop_ratio=0.01)  # one order, which takes no shards
        with pytest.raises(sw.InvalidOption, match=r"\[invalid-shards\] spark.slackwater.shards=5000; use 1 to 1024"):
            sw.ordered(events, event_time="ts", drop_ratio=0.01, per="sensor")
    finally:
        spark.conf.set("spark.slackwater.shards", str(before))
