"""Every method of disorder control on seeded streams, with golden values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from slackwater.control.disorder import UNKNOWN, Batch, Cause, DisorderController, make_method, method_names
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, run
from slackwater.sim.per_row import run_per_row
from slackwater.sim.streams.in_order import in_order
from slackwater.sim.streams.kim2012 import kim2012_changing
from slackwater.sim.streams.multi_source import multi_source
from slackwater.sim.streams.punctuated import punctuated
from slackwater.sim.trace import Trace

ROW_METHODS = [name for name in method_names() if isinstance(make_method(name, Completeness(0.01)), RowMethod)]
GOLDEN = Path(__file__).with_name("golden_methods.json")
GOLDEN_METHODS = [name for name in method_names() if name != "budgeted-quantile"]


def controller(name: str, drop_ratio: float = 0.01) -> DisorderController:
    promise = Completeness(drop_ratio)
    return DisorderController(promise, make_method(name, promise))


def numbers_only() -> Trace:
    """Order IDs slightly out of order, without a clock."""
    random = np.random.default_rng(5)
    ids = np.arange(2_000.0)
    return Trace("ids", ids[np.argsort(ids + random.exponential(20.0, len(ids)), kind="stable")])


TRACES = {
    "changing": lambda: kim2012_changing(7, 2_000),
    "sources": lambda: multi_source(7, 2_000),
    "punctuated": lambda: punctuated(7, 2_000),
    "numbers": numbers_only,
}


@pytest.mark.parametrize("trace_name", TRACES)
@pytest.mark.parametrize("name", method_names())
def test_heartbeat_never_retreats_and_rows_are_counted(name: str, trace_name: str) -> None:
    trace = TRACES[trace_name]()
    outcome = run(trace, controller(name), Batches.every(trace, 7))
    assert np.all(np.diff(outcome.heartbeats[np.isfinite(outcome.heartbeats)]) >= 0)
    assert 0 <= outcome.late <= outcome.rows == trace.rows


@pytest.mark.parametrize("name", method_names())
def test_snapshot_is_json_and_resumes(name: str) -> None:
    trace = TRACES["punctuated"]()
    half = trace.rows // 2
    assert trace.arrivals is not None
    assert trace.punctuations is not None
    straight, first, second = controller(name), controller(name), controller(name)
    for c, start, end in [(straight, 0, half), (first, 0, half), (straight, half, trace.rows)]:
        feed(c, trace, start, end)
    second.resume(json.loads(json.dumps(first.snapshot())))
    feed(second, trace, half, trace.rows)
    # A method may rescale its state, so the last digits can differ.
    assert second.heartbeat == pytest.approx(straight.heartbeat, abs=1e-6)
    assert second.snapshot().keys() == straight.snapshot().keys()


def feed(c: DisorderController, trace: Trace, start: int, end: int, step: int = 20) -> None:
    assert trace.arrivals is not None
    for k in range(start, end, step):
        cut = slice(k, min(k + step, end))
        punctuations = None if trace.punctuations is None else trace.punctuations[cut]
        if punctuations is not None:
            punctuations = punctuations[~np.isnan(punctuations)]
        rows = trace.values[cut]
        clock = float(trace.arrivals[cut][-1])
        late = int(np.count_nonzero(rows < c.heartbeat))
        c.observe(Batch(rows, trace.arrivals[cut], punctuations=punctuations, clock=clock, late=late))
        c.decide(clock)


@pytest.mark.parametrize("name", method_names())
def test_no_row_is_late_with_system_timestamps(name: str) -> None:
    trace = in_order(1, 3_000)
    assert run(trace, controller(name), Batches.every(trace, 5)).late == 0


@pytest.mark.parametrize("name", method_names())
def test_drop_ratio_of_zero_is_best_effort(name: str) -> None:
    trace = TRACES["changing"]()
    outcome = run(trace, controller(name, 0.0), Batches.every(trace, 5))
    assert outcome.rows == trace.rows


@pytest.mark.parametrize("name", ROW_METHODS)
@pytest.mark.parametrize("drop_ratio", [0.05, 0.001])
@pytest.mark.parametrize("trace_name", ["changing", "sources", "numbers"])
def test_trail_equals_batches_of_one_row(name: str, drop_ratio: float, trace_name: str) -> None:
    trace = TRACES[trace_name]()
    method = make_method(name, Completeness(drop_ratio))
    assert isinstance(method, RowMethod)
    quick = run_per_row(trace, method)
    slow = run(trace, controller(name, drop_ratio), Batches.every(trace, 1))
    assert quick.late == slow.late
    # Running sums restart with every batch, so the last digits of a mean can differ.
    assert np.allclose(quick.heartbeats[1:], slow.heartbeats[1:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ROW_METHODS)
def test_state_after_a_batch_equals_state_after_its_rows(name: str) -> None:
    trace = TRACES["changing"]()
    assert trace.arrivals is not None
    whole, single = make_method(name, Completeness(0.0)), make_method(name, Completeness(0.0))
    whole.observe(Batch(trace.values, trace.arrivals, clock=float(trace.arrivals[-1])))
    for value, arrival in zip(trace.values, trace.arrivals, strict=True):
        single.observe(Batch(np.array([value]), np.array([arrival]), clock=float(arrival)))
    clock = float(trace.arrivals[-1])
    assert whole.heartbeat(clock) == pytest.approx(single.heartbeat(clock), abs=1e-6)


@pytest.mark.parametrize("name", ROW_METHODS)
def test_weight_equals_repeated_rows(name: str) -> None:
    random = np.random.default_rng(11)
    promise = Completeness(0.05)
    weighted, repeated = make_method(name, promise), make_method(name, promise)
    for clock in np.arange(1_000.0, 40_000.0, 1_000.0):
        cells = clock - np.sort(random.choice(np.arange(0.0, 2_000.0, 25.0), 20, replace=False))
        weights = random.integers(1, 30, 20)
        weighted.observe(Batch(cells, weights=weights, clock=float(clock)))
        repeated.observe(Batch(np.repeat(cells, weights), clock=float(clock)))
    assert weighted.heartbeat(39_000.0) == pytest.approx(repeated.heartbeat(39_000.0), abs=1e-6)
    assert UNKNOWN < weighted.heartbeat(39_000.0) <= 39_000.0


def test_slack_wins_over_the_drop_ratio() -> None:
    trace = TRACES["changing"]()
    promise = Completeness(0.001)
    method = make_method("vseq", promise, slack_rows=20)
    capped = run(trace, DisorderController(promise, method), Batches.every(trace, 1))
    free = run(trace, controller("vseq", 0.001), Batches.every(trace, 1))
    assert capped.mean_buffer_rows < free.mean_buffer_rows
    assert capped.late > free.late
    buffered = [np.count_nonzero(trace.values[: k + 1] > capped.heartbeats[k + 1]) for k in range(trace.rows - 1)]
    assert max(buffered) <= 20


def test_slack_gives_the_cause_of_its_heartbeat() -> None:
    promise = Completeness(0.01)
    method = make_method("budgeted-quantile", promise, slack_rows=2)
    controller = DisorderController(promise, method)
    controller.observe(Batch(np.array([1.0]), clock=10.0))
    assert controller.decide(10.0).cause == Cause("starting"), "the inner method decides"
    controller.observe(Batch(np.array([8.0, 9.0, 7.0]), clock=10.0))
    assert controller.decide(10.0).cause == Cause("slack")


def test_slack_survives_a_restart() -> None:
    promise = Completeness(0.01)
    one, two = (make_method("max-delay", promise, slack_rows=5) for _ in range(2))
    one.observe(Batch(np.arange(10.0), np.arange(10.0), clock=9.0))
    two.resume(json.loads(json.dumps(one.snapshot())))
    assert two.heartbeat(9.0) == one.heartbeat(9.0)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fixed-slack", {"slack_rows": -1}),
        ("vseq", {"slack_rows": -1}),
        ("vseq", {"most_rows": 3}),
        ("ad-hoc", {"theta": "plus"}),
        ("normal", {"samples": 5}),
        ("normal", {"equation": 13}),
        ("adaptive-max-delay", {"interval_rows": 0}),
        ("mean-distance", {"window_rows": 0}),
        ("ring-quantile", {"least_rows": 5_000}),
        ("max-delay", {"nonsense": 1}),
    ],
)
def test_wrong_option_is_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=r"^\[[a-z-]+\] .*; "):
        make_method(name, Completeness(0.01), **options)


def measure(name: str) -> dict[str, float]:
    trace = punctuated(3, 20_000)
    outcome = run(trace, controller(name), Batches.every(trace, 10))
    return {"late": outcome.late, "mean_wait": outcome.mean_wait, "mean_buffer_rows": outcome.mean_buffer_rows}


@pytest.mark.parametrize("name", GOLDEN_METHODS)
def test_golden(name: str) -> None:
    """The outcome on a seeded stream does not change. ``python -m tests.control.test_methods`` rewrites the file."""
    assert measure(name) == pytest.approx(json.loads(GOLDEN.read_text())[name], rel=1e-9)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: measure(name) for name in GOLDEN_METHODS}, indent=2) + "\n")
