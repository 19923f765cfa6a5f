"""The simulator and Spark are twins: from the same micro-batches they make the same decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from slackwater.control.choice import Method
from slackwater.control.disorder import Batch, DisorderController, make_method, method_names
from slackwater.sim.driver import Batches, run
from slackwater.sim.trace import Trace
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
    ledger, mean_wait_ms, heartbeats = replayed.ledger, replayed.mean_wait_ms, replayed.heartbeats
    chosen_at_ms = replayed.chosen_at_ms
    assert trace.arrivals is not None
    clocks = [float(np.floor(trace.arrivals[end - 1])) for end in ends]
    assert chosen_at_ms == [None, *clocks[:-1]], "each micro-batch is judged by the decision from the one before it"

    tracker, decided = without_spark(trace, ends, chosen_at_ms, DEFAULT)
    assert decided == heartbeats, "every decision, to the millisecond"
    assert tracker.ledger == ledger
    assert tracker.mean_wait_ms == pytest.approx(mean_wait_ms, rel=1e-12)

    # The simulator sees rows and Spark histogram cells, so their waits differ by about the width of a cell. The rows of
    # the first micro-batch are measured from their own arrivals.
    rest = Trace("rest", trace.values[ends[0] :], trace.arrivals[ends[0] :])
    cuts = [end - ends[0] for end in ends[1:]]
    controller = DisorderController(PROMISE, make_method("budgeted-quantile", PROMISE))
    lateness, clock = trace.arrivals[: ends[0]] - trace.values[: ends[0]], float(trace.arrivals[ends[0] - 1])
    controller.observe(Batch(clock - lateness, clock=clock, reference=clock, began=float(trace.arrivals[0])))
    controller.decide(clock)
    outcome = run(rest, controller, Batches.at(rest, cuts), lag=1, hide_arrivals=True, clock_before=clocks[0])
    assert rest.arrivals is not None
    sizes = np.diff([0, *cuts])
    under = np.isfinite(outcome.heartbeats)
    waits = rest.arrivals[np.array(cuts) - 1][under] - outcome.heartbeats[under]
    spark_waits = np.array([clock - at for clock, at in zip(clocks[1:], heartbeats[1:], strict=True) if at is not None])
    print(f"mean wait: Spark {mean_wait_ms:.1f} ms, simulator {np.average(waits, weights=sizes[under]):.1f} ms")
    print(f"drop ratio: Spark {ledger.drop_ratio:.4%}, simulator {outcome.drop_ratio:.4%}")
    assert len(spark_waits) == len(waits)
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
        tracker, decided = without_spark(trace, ends, replayed.chosen_at_ms, method)
        assert replayed.heartbeats == decided, method.name
        assert replayed.ledger == tracker.ledger, method.name
        in_force = [-np.inf if heartbeat is None else heartbeat for heartbeat in replayed.heartbeats]
        judged = np.repeat(in_force, np.diff([0, *ends]))
        assert replayed.ledger.late == int(np.count_nonzero(trace.values < judged)), method.name
        assert np.isfinite(in_force).any(), f"{method.name} never has a heartbeat"
