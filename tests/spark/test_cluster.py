"""A promise on executor processes that share only a file system with the driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.control.ledger import Ledger
from tests.helpers.processes import run_on_cluster

pytestmark = pytest.mark.spark

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from pyspark.sql import functions as F
import slackwater as sw
from slackwater.spark.command.session import local_session
from tests.helpers.harness import FileStream, collected, rows, same_rows, settle, start, watermark_ms

root = Path(sys.argv[1])
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
    query = start(windows(events), root)
    settle(query)
    report = sw.report(query)
    mark = watermark_ms(query.lastProgress)
    query.stop()
    truth = windows(stream.read_batch()).where(F.unix_millis("window.end") <= F.lit(int(mark)))
    assert truth.count() > 10
    same_rows(collected(spark, root), truth)
    print(json.dumps(report.completeness[0].ledger.as_json()))
"""


@pytest.mark.full
def test_two_executor_processes(tmp_path: Path) -> None:
    assert Ledger.from_json(json.loads(run_on_cluster(SCRIPT, tmp_path)[-1])).input == 500
