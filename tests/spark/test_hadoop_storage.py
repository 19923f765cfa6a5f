"""A storage that Hadoop's file system opens, on the local file system under its own scheme."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.errors import InvalidOption
from slackwater.spark.runtime import location as locations
from slackwater.spark.runtime.hadoop_storage import HadoopStorage, hadoop_storage
from slackwater.spark.worker.mailbox import Mailbox
from tests.helpers.harness import FileStream, batches, promise_of, settle, start

pytestmark = pytest.mark.spark


@pytest.fixture
def storage(spark: SparkSession, tmp_path: Path) -> HadoopStorage:
    return hadoop_storage(spark, (tmp_path / "promise").as_uri())


def again(spark: SparkSession, storage: HadoopStorage) -> HadoopStorage:
    """The storage as the next driver sees it."""
    storage.flush(60)
    return hadoop_storage(spark, storage.uri)


def objects(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "promise").iterdir() if not path.name.startswith("."))


def test_the_newest_text_counts_and_older_ones_go(spark: SparkSession, storage: HadoopStorage, tmp_path: Path) -> None:
    assert storage.read("learned") is None
    for number in range(5):
        storage.write("learned", f"text {number} – é")
        assert storage.read("learned") == f"text {number} – é"
        storage.flush(60)
    assert again(spark, storage).read("learned") == "text 4 – é"
    assert [path.name for path in objects(tmp_path)] == ["learned.0000000003", "learned.0000000004"]
    after = again(spark, storage)
    after.write("learned", "of the next driver")
    assert again(spark, after).read("learned") == "of the next driver"


def test_a_part_of_a_text_is_passed_over(spark: SparkSession, storage: HadoopStorage, tmp_path: Path) -> None:
    for number in range(2):
        storage.write("learned", f"text {number}")
        storage.flush(60)
    newest = objects(tmp_path)[-1]
    newest.write_text(newest.read_text()[:-1])
    assert again(spark, storage).read("learned") == "text 0"


def test_a_plain_file_may_be_edited(spark: SparkSession, storage: HadoopStorage, tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "here", storage)
    assert mailbox.read_target() is None
    mailbox.write_target(2.0)
    assert mailbox.read_target() == "2.0 seconds"
    (tmp_path / "promise" / "target.txt").write_text("5 seconds\n")
    assert Mailbox(tmp_path / "here", again(spark, storage)).read_target() == "5 seconds"
    mailbox.write_target(None)
    assert mailbox.read_target() is None and not objects(tmp_path)


def test_what_cannot_be_written_is_said_once(
    storage: HadoopStorage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "promise").write_text("in the way")
    with caplog.at_level(logging.WARNING, "slackwater"):
        for number in range(2):
            storage.write("learned", str(number))
            storage.flush(60)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("[storage-unreachable] file:")


@pytest.mark.parametrize("location", ["nosuch://bucket/promises", "promises", "s3a:promises"])
def test_a_location_that_spark_cannot_open_is_refused(spark: SparkSession, tmp_path: Path, location: str) -> None:
    events = FileStream(spark, tmp_path / "in").read_stream()
    with pytest.raises(InvalidOption, match=r"\[invalid-location\]"):
        sw.with_drop_ratio(events, "ts", 0.01, location=location)


def test_a_promise_goes_on_from_a_storage_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "_mounted_path", lambda _: None)  # a file: URI is taken as any other
    stream, made = FileStream(spark, tmp_path / "in"), batches(seed=5, count=4)

    def result(driver: int) -> DataFrame:
        monkeypatch.setattr(locations, "_temporary_folder", lambda _: tmp_path / f"driver-{driver}")
        events = sw.with_drop_ratio(
            stream.read_stream(), "ts", "5%", arrival="arrived", name="elsewhere", location=tmp_path.as_uri()
        )
        return events.groupBy(F.window("ts", "5 seconds")).count()

    learned = []
    for driver in range(2):
        query = start(result(driver), tmp_path)
        for batch in made[2 * driver : 2 * driver + 2]:
            stream.put(batch)
            settle(query)
        promise = promise_of(query)
        learned.append(promise)
        query.stop()
        wait_for_storages(spark)
    before, after = learned
    assert (before.ledger.input, after.ledger.input, after.ledger.unreported_batches) == (120, 240, 0)
    assert before.series is not None and after.series is not None
    assert len(after.series.points) > len(before.series.points), "the history goes on"
    kinds = {path.name.split("-")[0] for path in (tmp_path / "elsewhere").iterdir() if path.name[0] != "."}
    assert kinds == {"snapshot", "series"}


def wait_for_storages(spark: SparkSession) -> None:
    """Wait until the session's promises are written."""
    from slackwater.spark.completeness.handler import CompletenessHandler
    from slackwater.spark.runtime.listener import listener_of

    for spec in listener_of(spark).handler(CompletenessHandler)._specs.values():
        if isinstance(spec.mailbox.storage, HadoopStorage):
            spec.mailbox.storage.flush(60)
