"""Ordinary usages of a promise: each is right, or refused before a row is lost. docs/usages.md lists them."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.errors import PromiseConflict
from slackwater.spark.runtime.listener import listener_of
from slackwater.watching.metrics import MEASURES
from slackwater.watching.page_html import headline
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, collected, promise_of, same_rows, settle, start
from tests.helpers.judged import counts_of_closed_windows, late_ids
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
MADE = batches(seed=11, count=4)
ROWS = sum(map(len, MADE))


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Settings of the session for a while, with ``__`` for dots; ``spark.sql.`` is left out of their names."""
    prefixes = {name: "" if name.startswith("fs__") else "spark.sql." for name in values}
    keys = {prefixes[name] + name.replace("__", "."): value for name, value in values.items()}
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
    """A stream without rows."""
    return FileStream(spark, tmp_path / "in")


def feed(query: StreamingQuery, stream: FileStream) -> None:
    """Let the query read the stream, every micro-batch under the heartbeat decided from the one before."""
    for batch in MADE:
        stream.put(batch)
        settle(query)


def promised(stream: FileStream, name: str | None = None, wait_ms: float = 3000.0, **options: Any) -> DataFrame:
    method = sw.Method(Trailing.name, wait_ms=wait_ms)
    return sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name=name, method=method, **options)


@usage(
    "`spark.sql.streaming.multipleWatermarkPolicy=max`",
    "refused (`[watermark-policy]`) when the promise is made and when the query is planned",
)
def test_the_highest_of_several_watermarks_is_refused(stream: FileStream, tmp_path: Path) -> None:
    """The setting is read when the promise is made, and again when the query is planned."""
    spark = stream.spark
    stream.put(MADE[0])
    left, right = promised(stream), promised(stream, wait_ms=9000.0).withColumnsRenamed({"ts": "ts2", "id": "id2"})
    joined = left.join(right.select("ts2", "id2"), left.id == right.id2)
    with settings(spark, streaming__multipleWatermarkPolicy="max"):
        with pytest.raises(PromiseConflict, match=r"\[watermark-policy\] .*=max.*set it to min"):
            promised(stream)
        query = start(joined, tmp_path)
        with pytest.raises(StreamingQueryException, match=r"\[watermark-policy\]"):
            query.processAllAvailable()
    assert query.lastProgress is None, "no micro-batch was committed"


Deliver = Callable[[DataFrame], None]


def write(batch: DataFrame) -> None:
    batch.write.mode("overwrite").format("noop").save()


def write_and_show(batch: DataFrame) -> None:
    write(batch)
    batch.limit(6).collect()  # as show() does


def look_and_write(batch: DataFrame) -> None:
    if not batch.isEmpty():
        write(batch)


def persist_and_use_twice(batch: DataFrame) -> None:
    batch.persist()
    write_and_show(batch)
    batch.unpersist()


def in_foreach_batch(events: DataFrame, stream: FileStream, deliver: Deliver) -> StreamingQuery:
    """Feed a query whose micro-batches go to ``deliver``."""
    writer = events.writeStream.foreachBatch(lambda batch, _number: deliver(batch))
    query = writer.option("checkpointLocation", str(stream.folder.parent / "checkpoint")).start()
    feed(query, stream)
    return query


@pytest.mark.parametrize("deliver", [write, persist_and_use_twice])
@usage("`foreachBatch` without state that uses its batch once, or persists it first", "right")
def test_foreach_batch_that_reads_a_batch_once(deliver: Deliver, stream: FileStream) -> None:
    query = in_foreach_batch(promised(stream), stream, deliver)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = len(late_ids(progress, MADE, stateless=True))
    assert late and (ledger.on_time, ledger.late) == (ROWS - late, late)
    # Before Spark 4.3 a batch that is used twice may have been counted twice.
    assert ledger.exact or (deliver is persist_and_use_twice and stream.spark.version < "4.3")


@pytest.mark.parametrize("deliver", [write_and_show, look_and_write])
@usage(
    "`foreachBatch` without state that uses its batch twice (a write and `show()`, `isEmpty()` and a write)",
    "the rows are right; the ledger says `exact: false` and why",
)
def test_foreach_batch_that_reads_a_batch_twice_is_said(deliver: Deliver, stream: FileStream) -> None:
    """Without state Spark reads the source again for each use, and nothing says how much of it."""
    query = in_foreach_batch(promised(stream, name=f"twice-{deliver.__name__}"), stream, deliver)
    report = sw.report(query)
    query.stop()
    assert report.ledger.misread_batches == len(MADE) and not report.ledger.exact
    (why,) = report.as_json()["ledger"]["why"]
    assert f"{len(MADE)} micro-batches were read in part or more than once" in why
    assert f"not exact   {why}" in str(report)
    (series,) = (promise.series for promise in report.completeness)
    assert series is not None
    metrics = {measure.name: list(measure.read(series)) for measure in MEASURES}
    assert metrics["slackwater_ledger_exact"] == [((), 0.0)]
    assert metrics["slackwater_misread_batches"] == [((), float(len(MADE)))]
    assert f"The ledger is not exact: {why}" in html.unescape(headline(series, 0.0))


@usage("the same under `with_max_delay`", "the rows are right; the ledger says `exact: false` and why")
def test_shedding_in_foreach_batch_that_reads_a_batch_twice_is_said(stream: FileStream) -> None:
    ledgers = {}
    for deliver in (write, write_and_show):
        source = FileStream(stream.spark, stream.folder.parent / deliver.__name__ / "in")
        slow = sw.with_max_delay(source.read_stream(), "1 hour", name=f"slow-{deliver.__name__}")
        query = in_foreach_batch(slow, source, deliver)
        ledgers[deliver] = sw.report(query).timeliness[0].ledger
        query.stop()
    assert ledgers[write] == Ledger(on_time=ROWS)
    assert ledgers[write_and_show].misread_batches == len(MADE) and not ledgers[write_and_show].exact


@usage("`foreachBatch` with state (windows, joins, …) that uses its batch twice", "right")
def test_foreach_batch_with_state_may_use_a_batch_twice(stream: FileStream) -> None:
    counts = promised(stream).groupBy(F.window("ts", "5 seconds"), "sensor").count()
    query = in_foreach_batch(counts, stream, write_and_show)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = len(late_ids(progress, MADE))
    assert ledger == Ledger(on_time=ROWS - late, late=late) and ledger.exact


@usage("`LATE ROWS` in `foreachBatch`", "right")
def test_late_rows_in_foreach_batch(stream: FileStream) -> None:
    """The plan reads the source twice by itself, which is no reason for doubt."""
    sw.stream("LateRows", stream.read_stream(), event_time="ts")
    text = "SELECT COUNT(*) AS n FROM LateRows [RANGE 5 seconds SLIDE 5 seconds ARRIVAL arrived LATE ROWS]"
    method = sw.Method(Trailing.name, wait_ms=3000.0)
    query = in_foreach_batch(sw.sql(stream.spark, text, method=method), stream, write)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = len(late_ids(progress, MADE))
    assert late and ledger == Ledger(on_time=ROWS - late, late=late)


def counted(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("ts", "5 seconds"), "sensor").count()


def is_right(query: StreamingQuery, stream: FileStream, found: DataFrame) -> None:
    """Stop a query of ``counted`` and compare its windows and ledger with a batch job's."""
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    same_rows(found, counts_of_closed_windows(progress, MADE, stream.read_batch()))
    late = len(late_ids(progress, MADE))
    assert found.count() and late
    assert ledger == Ledger(on_time=ROWS - late, late=late)


@usage("`spark.newSession()`, with a promise of the same name in the same folder", "right")
def test_a_new_session(stream: FileStream, tmp_path: Path) -> None:
    """A session of its own beside the first one, with a promise of the same name in the same folder."""
    sources = {"first": stream, "second": FileStream(stream.spark.newSession(), tmp_path / "in-second")}
    running = {}
    for name, source in sources.items():
        events = promised(source, name="same", location=str(tmp_path / "promises"))
        running[name] = start(counted(events), tmp_path / name)
        feed(running[name], source)
    for name, source in sources.items():
        is_right(running[name], source, collected(stream.spark, tmp_path / name))


@usage("`toTable`", "right")
def test_a_table_as_sink(stream: FileStream, tmp_path: Path) -> None:
    writer = counted(promised(stream)).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.option("path", str(tmp_path / "out")).toTable("promised_counts")
    try:
        feed(query, stream)
        is_right(query, stream, stream.spark.table("promised_counts"))
    finally:
        query.stop()
        stream.spark.sql("DROP TABLE promised_counts")


@usage("a promised DataFrame in a union with itself", "right: read and counted once")
def test_a_union_with_itself(stream: FileStream, tmp_path: Path) -> None:
    """Every row is in the result twice, and read and counted once."""
    events = promised(stream)
    query = start(counted(events.union(events)), tmp_path)
    feed(query, stream)
    found = collected(stream.spark, tmp_path).withColumn("count", (F.col("count") / 2).cast("bigint"))
    is_right(query, stream, found)


@usage("a promised DataFrame in a join with itself", "right: counted once")
def test_a_join_with_itself(stream: FileStream, tmp_path: Path) -> None:
    events = promised(stream, wait_ms=30_000.0)
    joined = events.alias("a").join(events.alias("b"), F.expr("a.id = b.id AND a.ts = b.ts")).select("a.id", "a.ts")
    query = start(joined, tmp_path)
    feed(query, stream)
    ledger = promise_of(query).ledger
    query.stop()
    assert ledger == Ledger(on_time=ROWS)
    same_rows(collected(stream.spark, tmp_path), stream.read_batch().select("id", "ts"))


@usage(
    "`spark.sql.streaming.noDataMicroBatches.enabled=false`",
    "right; windows close with the next rows or the next heartbeat",
)
def test_without_micro_batches_that_have_no_data(stream: FileStream, tmp_path: Path) -> None:
    """Windows close with the next rows or the next heartbeat, and hold the same rows."""
    with settings(stream.spark, streaming__noDataMicroBatches__enabled="false"):
        query = start(counted(promised(stream)), tmp_path)
        feed(query, stream)
    is_right(query, stream, collected(stream.spark, tmp_path))


ROCKSDB = {
    "streaming__stateStore__providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "streaming__stateStore__rocksdb__changelogCheckpointing__enabled": "true",
}


@usage("RocksDB state store with changelog, restarted", "right")
def test_state_in_rocksdb_with_changelog(stream: FileStream, tmp_path: Path) -> None:
    """Two runs from one checkpoint."""
    progress: list[Any] = []
    with settings(stream.spark, **ROCKSDB):
        for puts in (MADE[:2], MADE[2:]):
            query = start(counted(promised(stream, name="in-rocksdb")), tmp_path)
            for batch in puts:
                stream.put(batch)
                settle(query)
            progress += query.recentProgress
            ledger = promise_of(query).ledger
            query.stop()
    same_rows(collected(stream.spark, tmp_path), counts_of_closed_windows(progress, MADE, stream.read_batch()))
    late = len(late_ids(progress, MADE))
    assert late and ledger == Ledger(on_time=ROWS - late, late=late)


@usage(
    "`with_drop_ratio` and `with_max_delay` under one name",
    "refused (`[name-taken]`): both would keep their files in one folder",
)
def test_one_name_for_two_kinds_of_promise_is_refused(stream: FileStream) -> None:
    slow = sw.with_max_delay(stream.read_stream(), "2 seconds", name="one-name")
    with pytest.raises(PromiseConflict, match=r"\[name-taken\] .*timeliness named 'one-name'.*another name"):
        sw.with_drop_ratio(slow, "ts", "5%", name="one-name")


@usage(
    "continuous processing (`trigger(continuous=…)`)",
    "refused at the start (`[continuous-mode]`), with what to do",
)
def test_continuous_processing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses the union before any code of ours runs; its message shows our words."""
    ticks = sw.with_drop_ratio(spark.readStream.format("rate").load(), "timestamp", "1%")
    writer = ticks.writeStream.format("console").trigger(continuous="1 second")
    refused = r"Continuous processing does not support Union.*\n.*\n.*\[continuous-mode\] .*: use trigger"
    with pytest.raises(AnalysisException, match=refused):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()


@usage(
    "real-time mode (`trigger(realTime=…)`)",
    "refused before the first row; the log says `[real-time-mode]` and what to do",
)
def test_real_time_mode_is_refused(stream: FileStream, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The heartbeat source is none that real-time mode takes: the query fails when it opens its sources."""
    if stream.spark.version < "4.3":
        pytest.skip("this Spark has no such trigger in Python")
    stream.put(MADE[0])
    trigger: dict[str, Any] = {"realTime": "5 minutes"}
    writer = promised(stream).writeStream.format("console").outputMode("update").trigger(**trigger)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException, match="STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination()
    assert query.lastProgress is None, "no micro-batch was committed"
    listener_of(stream.spark).wait_for_end(str(query.id), timeout_s=60)
    assert "[real-time-mode] " in caplog.text


class Passing(StatefulProcessor):
    """Counts the rows of a key in its state, and lets them pass with that number."""

    def init(self, handle: Any) -> None:
        self._seen = handle.getValueState("seen", "seen long")

    def handleInputRows(self, key: Any, rows: Any, timer_values: Any) -> Iterator[pd.DataFrame]:
        before = self._seen.get()
        seen = 0 if before is None else before[0]
        for part in rows:
            numbers = range(seen + 1, seen + 1 + len(part))
            seen += len(part)
            yield pd.DataFrame({"id": part["id"], "ts": part["ts"], "number": numbers})
        self._seen.update((seen,))

    def close(self) -> None:
        """Nothing is open."""


@usage("`transformWithStateInPandas` in event time", "right: it gets the rows that are on time, each once")
def test_transform_with_state_in_pandas(stream: FileStream, tmp_path: Path) -> None:
    """Spark leaves out the rows below its watermark, which is the heartbeat."""
    pytest.importorskip("google.protobuf")
    # Spark casts the local file system to the class that it has by default, which is not that of the tests' session.
    local = {"fs__file__impl": "org.apache.hadoop.fs.LocalFileSystem", "fs__file__impl__disable__cache": "true"}
    with settings(stream.spark, **ROCKSDB, **local):
        schema = "id long, ts timestamp, number long"
        passed = (
            promised(stream)
            .groupBy("sensor")
            .transformWithStateInPandas(Passing(), schema, "Append", "EventTime", eventTimeColumnName="ts")
        )
        query = start(passed, tmp_path)
        feed(query, stream)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = late_ids(progress, MADE)
    assert late and ledger == Ledger(on_time=ROWS - len(late), late=len(late))
    found = collected(stream.spark, tmp_path).select("id", "number").collect()
    assert sorted(row.id for row in found) == sorted({row["id"] for made in MADE for row in made} - set(late))
