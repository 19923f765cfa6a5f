"""A query whose promise has lost or damaged its files starts again, fails at nothing and loses no row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from tests.helpers.harness import FileStream, collected, settle, start
from tests.spark.test_delay import numbered

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]

DAMAGES = {
    "empty": b"",
    "binary": b"\xff\xfe\x00\x80" * 40,
    "torn": b'{"batch": 1, "ledger": {"on_t',
    "of another kind": b"[1, 2]",
    "half": b'{"batch": 1}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_query_goes_on_with_damaged_files(spark: SparkSession, tmp_path: Path, damage: str) -> None:
    stream, location = FileStream(spark, tmp_path / "in"), tmp_path / "promises"

    def events() -> DataFrame:
        law = sw.Law("test-scripted", ratios=(0.5,))
        shed = sw.with_max_delay(stream.read_stream(), "1 hour", name="delay", law=law, location=str(location))
        return sw.with_drop_ratio(shed, "ts", "1%", arrival="arrived", name="loss", location=str(location))

    query = start(events(), tmp_path)
    for batch in range(3):
        stream.put(numbered(batch))
        settle(query)
    query.stop()
    snapshots = list(location.rglob("snapshot-*.json"))
    assert len(snapshots) == 2
    for path in [*snapshots, *location.rglob("shed.txt"), *location.rglob("series-*"), *location.rglob("heartbeat-*")]:
        path.write_bytes(DAMAGES[damage])
    query = start(events(), tmp_path)
    for batch in range(3, 6):
        stream.put(numbered(batch))
        settle(query)
    report = sw.report(query)
    query.stop()
    out = collected(spark, tmp_path).toPandas()
    (delay,) = report.timeliness
    (promise,) = report.completeness
    assert out["id"].is_unique and query.exception() is None
    # what was shed before the damage is no longer known; every row since is in the ledger
    since = out[out["id"] >= 3 * 500]
    assert (delay.ledger.input, delay.ledger.on_time) == (3 * 500, len(since))
    assert delay.ledger.unreported_batches > 0
    assert promise.ledger.input == len(out), "the ledger of completeness is in the checkpoint"


def test_a_report_while_the_folder_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """The folder is away for one micro-batch: the report says what the driver knows, and then all is counted."""
    stream, location, away = FileStream(spark, tmp_path / "in"), tmp_path / "promises", tmp_path / "away"
    law = sw.Law("test-scripted", ratios=(0.5,))
    # another query's promise, of which the driver knows only what its files say
    sw.with_max_delay(stream.read_stream(), "1 hour", name="another", law=law, location=str(location))
    query = start(
        sw.with_max_delay(stream.read_stream(), "1 hour", name="away", law=law, location=str(location)), tmp_path
    )
    for batch in range(3):
        if batch == 1:
            location.rename(away)
            location.touch()
        if batch == 2:
            location.unlink()
            away.rename(location)
        stream.put(numbered(batch))
        settle(query)
        ledger = sw.report(query).ledger
        assert ledger.exact and ledger.input == (batch + 1) * 500
    query.stop()
    assert ledger.on_time == collected(spark, tmp_path).count()
