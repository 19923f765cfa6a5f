"""Ordinary usages of a promise: each is right, or refused before a row is lost. docs/usages.md lists them."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.errors import PromiseConflict
from slackwater.watching.metrics import MEASURES
from slackwater.watching.page_html import headline
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, collected, promise_of, same_rows, settle, start
from tests.helpers.judged import counts_of_closed_windows, late_ids

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
def test_foreach_batch_that_reads_a_batch_once(deliver: Deliver, stream: FileStream) -> None:
    query = in_foreach_batch(promised(stream), stream, deliver)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = len(late_ids(progress, MADE, stateless=True))
    assert late and (ledger.on_time, ledger.late) == (ROWS - late, late)
    # Before Spark 4.3 a batch that is used twice may have been counted twice.
    assert ledger.exact or (deliver is persist_and_use_twice and stream.spark.version < "4.3")


@pytest.mark.parametrize("deliver", [write_and_show, look_and_write])
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


def test_foreach_batch_with_state_may_use_a_batch_twice(stream: FileStream) -> None:
    counts = promised(stream).groupBy(F.window("ts", "5 seconds"), "sensor").count()
    query = in_foreach_batch(counts, stream, write_and_show)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = len(late_ids(progress, MADE))
    assert ledger == Ledger(on_time=ROWS - late, late=late) and ledger.exact


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
