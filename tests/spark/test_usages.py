"""Ordinary usages of a promise: each is right, or refused before a row is lost. docs/usages.md lists them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.errors import PromiseConflict
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, start

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
MADE = batches(seed=11, count=4)
ROWS = sum(map(len, MADE))


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Settings of the session, by the part of the name after ``spark.sql.``, for a while."""
    keys = {f"spark.sql.{name.replace('__', '.')}": value for name, value in values.items()}
    before = {key: spark.conf.get(key, None) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> FileStream:
    made = FileStream(spark, tmp_path / "in")
    for batch in MADE:
        made.put(batch)
    return made


def promised(stream: FileStream, name: str | None = None, wait_ms: float = 3000.0, **options: Any) -> DataFrame:
    method = sw.Method(Trailing.name, wait_ms=wait_ms)
    return sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name=name, method=method, **options)


def test_the_highest_of_several_watermarks_is_refused(stream: FileStream, tmp_path: Path) -> None:
    """The setting is read when the promise is made, and again when the query is planned."""
    spark = stream.spark
    left, right = promised(stream), promised(stream, wait_ms=9000.0).withColumnsRenamed({"ts": "ts2", "id": "id2"})
    joined = left.join(right.select("ts2", "id2"), left.id == right.id2)
    with settings(spark, streaming__multipleWatermarkPolicy="max"):
        with pytest.raises(PromiseConflict, match=r"\[watermark-policy\] .*=max.*set it to min"):
            promised(stream)
        query = start(joined, tmp_path)
        with pytest.raises(StreamingQueryException, match=r"\[watermark-policy\]"):
            query.processAllAvailable()
    assert query.lastProgress is None, "no micro-batch was committed"
