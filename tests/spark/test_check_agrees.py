"""``check --schema`` says of a text what Spark says when the query is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.helpers.check_against_spark import verdicts


@pytest.mark.spark
@pytest.mark.full
def test_check_agrees_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    found = list(verdicts(spark.newSession(), tmp_path, count=40, seed=3))
    assert [one for one in found if not one.agree] == []
    assert sum(one.spark is None for one in found) > 10 and sum(one.spark is not None for one in found) > 10
