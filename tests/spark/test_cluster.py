"""A promise on executor processes that share only a file system with the driver."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from slackwater.control.ledger import Ledger
from tests.helpers.processes import run_on_cluster
from tests.helpers.usages import usage

pytestmark = pytest.mark.spark

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from pyspark.sql import functions as F
import slackwater as sw
from slackwater.spark.command.session import local_session
from tests.helpers.harness import FileStream, collected, rows, same_rows, settle, start, watermark_ms
from tests.helpers.killable_cluster import Losing

root, lost = Path(sys.argv[1]), LOST
conf = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2"}
with local_session("cluster", **conf) as spark:
    assert spark.conf.get("spark.master").startswith("local-cluster")
    stream = FileStream(spark, root / "in")
    for batch in range(5):
        at = batch * 10 + np.linspace(0, 10, 100, endpoint=False)
        stream.put(rows(at, 0.4 * np.abs(np.sin(at * 5)), first_id=batch * 100))
    events = sw.with_drop_ratio(
        stream.read_stream(), "ts", "5%", arrival="arrived", location=str(root / "slackwater"), min_wait="1 second"
    )
    windows = lambda frame: frame.groupBy(F.window("ts", "5 seconds"), "sensor").count()
    result = windows(events)
    query = start(result.mapInArrow(Losing(root / "lost"), result.schema) if lost else result, root)
    settle(query)
    report = sw.report(query)
    mark = watermark_ms(query.lastProgress)
    query.stop()
    truth = windows(stream.read_batch()).where(F.unix_millis("window.end") <= F.lit(int(mark)))
    assert truth.count() > 10
    same_rows(collected(spark, root), truth)
    print(json.dumps(report.completeness[0].ledger.as_json()))
"""


def ledger_of(script: str, folder: Path) -> Ledger:
    return Ledger.from_json(json.loads(run_on_cluster(script, folder)[-1]))


@pytest.mark.full
def test_two_executor_processes(tmp_path: Path) -> None:
    assert ledger_of(SCRIPT.replace("LOST", "False"), tmp_path).input == 500


@pytest.mark.full
@usage(
    "an executor that is lost after it has read rows",
    "right; the ledger is exact from Spark 4.3 on. Before, Spark counts the rows that are read again twice, and the "
    "ledger says `exact: false` and why",
)
def test_a_lost_executor(tmp_path: Path) -> None:
    ledger = ledger_of(SCRIPT.replace("LOST", "True"), tmp_path)
    assert (tmp_path / "lost").exists()
    if pyspark.__version__ >= "4.3":
        assert ledger.exact and ledger.input == 500
    else:
        assert not ledger.exact and ledger.misread_batches and ledger.input >= 500
