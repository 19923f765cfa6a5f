"""Progress events are read as JSON and say what PySpark reads from them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent

from slackwater.spark.runtime.progress_events import JsonProgressListener, progress_event

pytestmark = pytest.mark.spark


class Keeping(JsonProgressListener):
    """Keeps the progress events; says when a query has ended."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        self.seen.append(event)

    def onQueryTerminated(self, event: Any) -> None:
        self.ended.set()


@pytest.fixture
def java_event(spark: SparkSession, tmp_path: Path) -> Any:
    """The event of a micro-batch with state, a watermark and observed metrics, as Spark hands it out."""
    events = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2000).load()
    cells = F.expr("approx_top_k(value % 1000, 1000, 4096)").alias("cells")
    observed = events.observe("one", F.count(F.lit(1)).alias("rows"), cells)
    counted = observed.observe("two", F.max(F.lit("ü")).alias("text"), F.min(F.lit(None)).alias("nothing"))
    counted = counted.withWatermark("timestamp", "1 second").groupBy(F.window("timestamp", "1 second")).count()
    writer = counted.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query: Any = writer.trigger(availableNow=True).start()
    query.awaitTermination(60)
    return SimpleNamespace(progress=query._jsq.lastProgress)


def test_json_says_what_pyspark_reads(java_event: Any) -> None:
    ours, theirs = progress_event(java_event).progress, QueryProgressEvent.fromJObject(java_event).progress
    assert ours._jprogress is None, "it was read as JSON"
    for field in ("id", "runId", "name", "timestamp", "batchId", "durationMs", "eventTime", "numInputRows"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert [dict(operator) for operator in ours.stateOperators] == [dict(each) for each in theirs.stateOperators]
    assert dict(ours.sink) == dict(theirs.sink)
    for mine, other in zip(ours.sources, theirs.sources, strict=True):
        assert (mine.description, mine.numInputRows) == (other.description, other.numInputRows)
        assert json.loads(mine.endOffset) == json.loads(other.endOffset)
        assert (mine.startOffset, other.startOffset) == ("null", "None"), "the query has just begun"
    as_read = {name: row.asDict(recursive=True) for name, row in theirs.observedMetrics.items()}
    assert {name: row.asDict() for name, row in ours.observedMetrics.items()} == as_read
    assert len(as_read["one"]["cells"]) == 1000
    assert as_read["one"]["rows"] == 2000 and as_read["two"]["text"] == "ü"


def test_an_event_that_json_cannot_hold_is_read_by_pyspark(java_event: Any) -> None:
    progress = java_event.progress()

    class NoJson:
        """The same event, as something that has no text in Java."""

        def __getattr__(self, name: str) -> Any:
            return getattr(progress, name)

    read = progress_event(SimpleNamespace(progress=NoJson)).progress
    assert read.batchId == progress.batchId()
    assert read.observedMetrics["one"]["rows"] == 2000


def test_spark_calls_the_reader_of_json(spark: SparkSession, tmp_path: Path) -> None:
    listener = Keeping()
    spark.streams.addListener(listener)
    try:
        events = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        writer = events.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        writer.trigger(availableNow=True).start().awaitTermination(60)
        assert listener.ended.wait(60)
    finally:
        spark.streams.removeListener(listener)
    assert [event.progress._jprogress for event in listener.seen] == [None] * len(listener.seen) != []


def test_a_spark_without_the_wrapper_gets_the_listener_of_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = SimpleNamespace(PythonStreamingQueryListenerWrapper=lambda reader: type(reader))
    monkeypatch.setattr("pyspark.SparkContext._jvm", jvm)
    assert Keeping()._jlistener is JStreamingQueryListener
