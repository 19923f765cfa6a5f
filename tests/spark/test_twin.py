"""The simulator and Spark are twins: from the same micro-batches they make the same decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from slackwater.control.choice import Method
from slackwater.control.disorder import UNKNOWN, DisorderController, make_method, method_names
from slackwater.sim.spark_batches import SparkBatches, run_on_spark
from slackwater.units import DAY_MS
from tests.helpers.twin import PROMISE, on_spark, trace_in_micros, without_spark

pytestmark = pytest.mark.spark

CELL_WIDTH = 2 ** (1 / 64) - 1
DEFAULT = Method("budgeted-quantile")
OPTIONS = {"fixed-slack": {"slack_rows": 40}, "normal": {"estimate_every": 300, "sample_every": 10, "samples": 100}}
OF_PAPERS = [name for name in method_names() if name not in (DEFAULT.name, "source-heartbeat")]


def test_spark_decides_as_the_simulator_does(spark: SparkSession, tmp_path: Path) -> None:
    trace = trace_in_micros()
    ends = [*range(250, trace.rows, 250), trace.rows]
    (replayed,) = on_spark(spark, tmp_path, trace, ends, [DEFAULT])
    ledger, mean_wait_ms = replayed.ledger, replayed.mean_wait_ms
    tracker, heartbeats, raised_by_rows = without_spark(trace, ends, DEFAULT)
    assert heartbeats == replayed.heartbeats, "every decision, to the millisecond"
    assert raised_by_rows >= 1, "rows raise the heartbeat above the decision from the micro-batch before theirs"
    assert tracker.ledger == ledger
    assert tracker.mean_wait_ms == pytest.approx(mean_wait_ms, rel=1e-12)

    # The simulator sees rows and Spark histogram cells, so their waits differ by about the width of a cell. A replay is
    # planned long after its rows arrived, so its clock does not run on by itself.
    assert trace.arrivals is not None and mean_wait_ms is not None
    clocks = trace.arrivals[np.array(ends) - 1]
    planned = clocks + DAY_MS
    controller = DisorderController(PROMISE, make_method("budgeted-quantile", PROMISE))
    outcome = run_on_spark(trace, controller, SparkBatches(np.array(ends), planned, planned), settles=True)
    in_force = np.array([UNKNOWN if at is None else at for at in replayed.heartbeats])
    under = np.isfinite(outcome.heartbeats)
    waits, spark_waits = clocks[under] - outcome.heartbeats[under], clocks[under] - in_force[under]
    sizes = np.diff([0, *ends])
    print(f"mean wait: Spark {mean_wait_ms:.1f} ms, simulator {np.average(waits, weights=sizes[under]):.1f} ms")
    print(f"drop ratio: Spark {ledger.drop_ratio:.4%}, simulator {outcome.drop_ratio:.4%}")
    # The median: where two candidates are nearly as good, the width of a cell may decide between them.
    assert np.median(np.abs(spark_waits - waits) / waits) <= CELL_WIDTH
    assert PROMISE.kept_by(ledger.late, ledger.on_time)
    assert PROMISE.kept_by(outcome.late, outcome.rows - outcome.late)


@pytest.mark.full
def test_every_method_of_the_papers_decides_on_spark_as_without_it(spark: SparkSession, tmp_path: Path) -> None:
    """Late rows are counted exactly, and a heartbeat comes, whatever the method."""
    trace = trace_in_micros()
    ends = [600, 1200, 1800, 2400, trace.rows]
    methods = [Method(name, **OPTIONS.get(name, {})) for name in OF_PAPERS]
    replays = on_spark(spark, tmp_path, trace, ends, methods)
    for method, replayed in zip(methods, replays, strict=True):
        tracker, decided, _ = without_spark(trace, ends, method)
        assert replayed.heartbeats == decided, method.name
        assert replayed.ledger == tracker.ledger, method.name
        in_force = [UNKNOWN if heartbeat is None else heartbeat for heartbeat in replayed.heartbeats]
        judged = np.repeat(in_force, np.diff([0, *ends]))
        assert replayed.ledger.late == int(np.count_nonzero(trace.values < judged)), method.name
        assert np.isfinite(in_force).any(), f"{method.name} never has a heartbeat"
