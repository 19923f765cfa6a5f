"""The target of a running query changes by a call or a file and survives a restart; bad values change nothing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.errors import InvalidOption, UnknownName
from tests.helpers.harness import FileStream, settle, start
from tests.spark.test_delay import delay_of, numbered

pytestmark = pytest.mark.spark


def promised(stream: FileStream, location: Path, name: str = "orders-delay") -> DataFrame:
    return sw.with_max_delay(stream.read_stream(), "1 second", name=name, location=str(location))


def batch(stream: FileStream, query: Any) -> None:
    stream.put(numbered(stream.files))
    settle(query)


def test_the_target_of_a_running_query_is_changed_by_call_and_by_file(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream, location = FileStream(spark, tmp_path / "in"), tmp_path / "promises"
    file = location / "orders-delay" / "target.txt"
    query = start(promised(stream, location), tmp_path)
    batch(stream, query)
    batch(stream, query)
    assert delay_of(query).promise.max_delay_s == 1.0 and not file.exists()

    sw.retarget(query, "3 seconds")
    batch(stream, query)
    assert delay_of(query).promise.max_delay_s == 3.0

    for wrong, condition in (("soon", "invalid-duration"), (0, "no-delay-at-all"), (-1, "invalid-duration")):
        with pytest.raises(InvalidOption, match=condition):
            sw.retarget(query, wrong)
    assert file.read_text() == "3.0 seconds\n"

    file.write_text("5 seconds\n")
    batch(stream, query)
    assert delay_of(query).promise.max_delay_s == 5.0

    file.write_text("fast, please\n")
    with caplog.at_level(logging.WARNING, "slackwater"):
        batch(stream, query)
        batch(stream, query)
    refused = [record.getMessage() for record in caplog.records if "[target-refused]" in record.getMessage()]
    assert len(refused) == 1 and "'fast, please'" in refused[0] and "stays at 5 s" in refused[0]
    assert delay_of(query).promise.max_delay_s == 5.0

    sw.retarget(query, None)
    batch(stream, query)
    delay = delay_of(query)
    query.stop()
    assert delay.promise.max_delay_s == 1.0 and not file.exists()
    assert delay.series is not None
    # the target of a decision holds for the micro-batches after it
    assert [point.target_s for point in delay.series.points] == [1.0, 1.0, 3.0, 5.0, 5.0, 5.0, 1.0]
    # of six micro-batches with a delay (the first has none), two ran under 1 s, one under 3 s and three under 5 s; on a
    # slow machine some of their rows are shed
    kept = np.diff([point.ledger.on_time for point in delay.series.points])
    assert delay.mean_target_s == pytest.approx(np.average([1.0, 1.0, 3.0, 5.0, 5.0, 5.0], weights=kept))
    assert delay.kept == (delay.mean_delay_s is not None and delay.mean_delay_s <= delay.mean_target_s)


def test_a_changed_target_survives_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    stream, location = FileStream(spark, tmp_path / "in"), tmp_path / "promises"
    query = start(promised(stream, location), tmp_path)
    batch(stream, query)
    batch(stream, query)
    sw.retarget(query, "4 seconds")
    query.stop()
    query = start(promised(stream, location), tmp_path)
    assert delay_of(query).promise.max_delay_s == 4.0, "before the first micro-batch of the run"
    batch(stream, query)
    delay = delay_of(query)
    query.stop()
    assert delay.promise.max_delay_s == 4.0
    assert delay.ledger.input == 3 * len(numbered(0))


def test_a_promise_is_chosen_by_name_where_there_are_several(spark: SparkSession, tmp_path: Path) -> None:
    one, other = FileStream(spark, tmp_path / "one"), FileStream(spark, tmp_path / "other")
    location = tmp_path / "promises"
    both = promised(one, location, "one").union(promised(other, location, "other"))
    query = start(both, tmp_path)
    with pytest.raises(UnknownName, match="no-promise"):
        sw.retarget(query, "2 seconds")
    sw.retarget(query, "2 seconds", name="one")
    batch(one, query)
    batch(other, query)
    with pytest.raises(UnknownName, match="several-promises"):
        sw.retarget(query, "2 seconds")
    with pytest.raises(UnknownName, match="no-promise"):
        sw.retarget(query, "2 seconds", name="third")
    targets = {delay.name: delay.promise.max_delay_s for delay in sw.report(query).timeliness}
    query.stop()
    assert targets == {"one": 2.0, "other": 1.0}
