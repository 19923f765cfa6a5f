"""Micro-batches that were committed but not reported are counted again: the ledger has no hole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.spark.completeness.handler import CompletenessHandler
from slackwater.spark.standing.handler import PrecisionHandler
from slackwater.spark.timeliness.handler import TimelinessHandler
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, collected, promise_of, settle, start
from tests.helpers.judged import late_ids
from tests.helpers.standing import SCHEMA, micro_batches, put_weights, updates
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
MADE = batches(seed=5, count=6)
for made in MADE:
    made[7]["ts"] = None
ROWS = sum(map(len, MADE))
VALID = [[row for row in made if row["ts"] is not None] for made in MADE]


def promised(stream: FileStream, name: str, events: DataFrame | None = None, **options: Any) -> DataFrame:
    method = sw.Method(Trailing.name, wait_ms=3000.0)
    read = stream.read_stream() if events is None else events
    return sw.with_drop_ratio(read, "ts", "5%", arrival="arrived", name=name, method=method, **options)


@contextmanager
def unreported(lost: set[int], handler: Any = CompletenessHandler) -> Iterator[None]:
    """Lose the reports of some micro-batches, as a crash between the commit and the report does."""
    handle = handler.on_progress

    def on_progress(self: Any, progress: Any) -> Any:
        return [] if progress.batchId in lost else handle(self, progress)

    handler.on_progress = on_progress
    try:
        yield
    finally:
        handler.on_progress = handle


def run(make: Any, folder: Path, stream: FileStream, made: list[Any], lost: set[int]) -> tuple[Ledger, list[Any]]:
    """Run until all rows are read; what the ledger says, and the progress of the run."""
    with unreported(lost):
        query = start(make(), folder)
        for batch in made:
            stream.put(batch)
            settle(query)
        ledger, progress = promise_of(query).ledger, query.recentProgress
        query.stop()
    return ledger, progress


@usage(
    "a crash between the commit of a micro-batch and its report",
    "right: the next run counts its rows again, and the ledger is exact",
)
def test_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """The last micro-batches of the first run are in no report; the second run counts them, by their own heartbeat."""
    stream = FileStream(spark, tmp_path / "in")
    first, before = run(lambda: promised(stream, "recounted"), tmp_path, stream, MADE[:4], set(range(4, 100)))
    assert first.input < 4 * len(MADE[0])
    second, after = run(lambda: promised(stream, "recounted"), tmp_path, stream, MADE[4:], set())
    late = len(late_ids(before + after, VALID, stateless=True))
    assert late and second == Ledger(on_time=ROWS - late - len(MADE), late=late, invalid=len(MADE))
    assert second.exact


@usage(
    "a crash between the commit of the file sink and that of Spark's checkpoint",
    "right: the next run goes on, and counts the rows that the sink already has",
)
def test_a_batch_that_the_file_sink_already_has(spark: SparkSession, tmp_path: Path) -> None:
    """Spark repeats the last micro-batch but does not run its plan, so it observes nothing."""
    stream = FileStream(spark, tmp_path / "in")
    first, before = run(lambda: promised(stream, "in-the-sink"), tmp_path, stream, MADE[:4], set(range(4, 100)))
    last = max(progress["batchId"] for progress in before if progress["numInputRows"] >= len(MADE[3]))
    forget_after(tmp_path / "checkpoint" / "commits", last - 1)
    forget_after(tmp_path / "checkpoint" / "offsets", last)
    forget_after(tmp_path / "out" / "_spark_metadata", last)
    second, after = run(lambda: promised(stream, "in-the-sink"), tmp_path, stream, MADE[4:], set())
    assert after[0]["batchId"] == last, "the micro-batch is repeated"
    judged = [progress for progress in before if progress["batchId"] <= last] + after[1:]
    late = len(late_ids(judged, VALID, stateless=True))
    assert first.input < second.input
    assert late and second == Ledger(on_time=ROWS - late - len(MADE), late=late, invalid=len(MADE))
    assert collected(spark, tmp_path).count() == ROWS - len(MADE), "every valid row, once"


def forget_after(log: Path, batch: int) -> None:
    """Take the entries after this micro-batch out of one of Spark's logs, as if it had not come so far."""
    for entry in log.iterdir():
        number = entry.name.strip(".").removesuffix(".crc")
        if number.isdigit() and int(number) > batch:
            entry.unlink()


def test_a_report_that_is_lost_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    ledger, progress = run(lambda: promised(stream, "lost-once"), tmp_path, stream, MADE, {3, 4})
    late = len(late_ids(progress, VALID, stateless=True))
    assert late and ledger == Ledger(on_time=ROWS - late - len(MADE), late=late, invalid=len(MADE))


def test_what_cannot_be_told_again_stays_uncounted(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = FileStream(spark, tmp_path / "in")
    drawn = stream.read_stream().where(F.rand(1) < 2)
    ledger, _ = run(lambda: promised(stream, "drawn", drawn), tmp_path, stream, MADE, {3})
    assert not ledger.exact and ledger.unreported_batches == 1
    assert "[batch-not-counted] batch 3" in caplog.text and "[batch-not-repeatable]" in caplog.text
    assert [query for query in spark.streams.active if query.isActive] == []


def shed(stream: FileStream, name: str) -> DataFrame:
    law = sw.Law("test-scripted", ratios=(0.5,))
    return sw.with_max_delay(stream.read_stream(), "1 second", law=law, name=name)


def shed_run(stream: FileStream, folder: Path, name: str, made: list[Any], lost: set[int]) -> tuple[Ledger, str]:
    """Run until all rows are read; what the ledger says, and the whole report."""
    with unreported(lost, TimelinessHandler):
        query = start(shed(stream, name), folder)
        for batch in made:
            stream.put(batch)
            settle(query)
        report = sw.report(query)
        query.stop()
    return report.timeliness[0].ledger, str(report)


@usage(
    "a crash before a report, under `with_max_delay`",
    "the rows are right; the ledger says `exact: false` and why, since nobody knows which rows were shed",
)
def test_what_was_shed_before_a_crash_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    shed_run(stream, tmp_path, "shed-lost", MADE[:4], {3})
    ledger, said = shed_run(stream, tmp_path, "shed-lost", MADE[4:], set())
    assert (ledger.input, ledger.unreported_batches) == (ROWS - len(MADE[3]), 1)
    assert not ledger.exact and "not exact   1 micro-batch was committed just before a crash" in said


def test_a_report_under_with_max_delay_that_is_lost_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    ledger, _ = shed_run(stream, tmp_path, "shed-lost-once", MADE, {2, 3})
    assert (ledger.input, ledger.unreported_batches) == (ROWS - 2 * len(MADE[2]), 2)


def test_a_batch_under_with_max_delay_that_the_file_sink_already_has(spark: SparkSession, tmp_path: Path) -> None:
    """Spark does not run it again, so nothing says how many of its rows were shed."""
    stream = FileStream(spark, tmp_path / "in")
    shed_run(stream, tmp_path, "shed-in-the-sink", MADE[:4], {3})
    forget_after(tmp_path / "checkpoint" / "commits", 2)
    ledger, _ = shed_run(stream, tmp_path, "shed-in-the-sink", MADE[4:], set())
    assert (ledger.input, ledger.unreported_batches) == (ROWS - len(MADE[3]), 1)
    kept = collected(spark, tmp_path)
    assert kept.count() == kept.select("id").distinct().count() > ledger.on_time


@pytest.mark.parametrize("kind", ["completeness", "timeliness", "precision"])
def test_a_report_before_the_first_micro_batch_of_a_run(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    """It is that of the run before, and says that this one did not report all that it committed."""
    standing = kind == "precision"
    handler: dict[str, Any] = {
        "completeness": CompletenessHandler,
        "timeliness": TimelinessHandler,
        "precision": PrecisionHandler,
    }
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    stream = FileStream(spark, tmp_path / "in", SCHEMA if standing else FileStream.schema)
    made = micro_batches(24, warm_up=20)[:4] if standing else MADE[:4]
    makes: dict[str, Callable[[], DataFrame]] = {
        # nobody can count these rows again, so nothing is mended in the meantime
        "completeness": lambda: promised(stream, "early-1", stream.read_stream().where(F.rand(1) < 2)),
        "timeliness": lambda: shed(stream, "early-2"),
        "precision": lambda: updates(spark, tmp_path, name="early-3"),
    }
    with unreported(set(range(3, 100)), handler[kind]):
        query = start(makes[kind](), tmp_path)
        for rows in made:
            stream.put(rows)
            settle(query)
        query.stop()
    query = start(makes[kind](), tmp_path)
    query.processAllAvailable()
    ledger = sw.report(query).ledger
    query.stop()
    assert 0 < ledger.input < sum(map(len, made))
    assert not ledger.exact and ledger.unreported_batches >= 1


@usage(
    "a crash before a report, under `sw.standing`",
    "right: the state keeps the counts, and the next micro-batch brings them",
)
def test_standing_queries_keep_their_counts(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    stream, ticks = FileStream(spark, tmp_path / "in", SCHEMA), micro_batches(26, warm_up=20)
    ledgers = []
    for made, lost in ((ticks[:4], {2, 3}), (ticks[4:], set[int]())):
        with unreported(lost, PrecisionHandler):
            query = start(updates(spark, tmp_path, name="standing-lost"), tmp_path)
            for batch in made:
                stream.put(batch)
                settle(query)
            ledgers.append(sw.report(query).precision[0].ledger)
            query.stop()
    assert ledgers[0].input == sum(map(len, ticks[:2]))
    assert ledgers[1] == Ledger(on_time=sum(map(len, ticks)))
