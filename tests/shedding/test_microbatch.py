"""The controller for micro-batches, on a simulated micro-batch engine."""

from __future__ import annotations

import json

import numpy as np
import pytest

from slackwater.control.shedding import make_law
from slackwater.control.shedding.batch_cost import BatchCostMonitor
from slackwater.control.shedding.microbatch import AIM, MOST_SHED, MicroBatch, MicroBatchController
from slackwater.promises import Timeliness
from slackwater.sim.shedding import rows_from_rates
from slackwater.sim.shedding.microbatch import MicroBatchRun, run_micro_batches

FIXED_S, COST_S = 0.15, 0.001
TARGET_S = 2.0


def run(law: str, rates: np.ndarray, *, trigger_s: float = 1.0, lag: int = 0, noise: float = 0.05) -> MicroBatchRun:
    return run_micro_batches(
        law,
        rows_from_rates(rates),
        target_s=TARGET_S,
        trigger_s=trigger_s,
        fixed_s=FIXED_S,
        cost_s=COST_S,
        noise=noise,
        lag=lag,
    )


def mean_delay_s(result: MicroBatchRun, rates: np.ndarray, start_s: float, end_s: float) -> float:
    arrivals_s = rows_from_rates(rates)
    return float(np.nanmean(result.delays_s[(arrivals_s > start_s) & (arrivals_s < end_s)]))


@pytest.mark.parametrize("overload", [2.0, 4.0])
@pytest.mark.parametrize("trigger_s", [0.2, 1.0])
@pytest.mark.parametrize("lag", [0, 1])
def test_delay_settles_at_the_target_without_excess_loss(overload: float, trigger_s: float, lag: int) -> None:
    # at the target D = 2·0.92/1.5 s, of which 0.15 s is the fixed cost, so the capacity is (1 − 0.15/D)/0.001
    duration_s = AIM * TARGET_S / 1.5
    capacity_per_s = (1 - FIXED_S / duration_s) / COST_S
    rates = np.full(300, overload * capacity_per_s)
    result = run("ctrl-batch", rates, trigger_s=trigger_s, lag=lag)
    settled_s = mean_delay_s(result, rates, 100, 290)
    if lag:
        # decisions then apply to the wrong batch; the docs promise 15 % around the target
        assert settled_s == pytest.approx(TARGET_S, rel=0.15)
    else:
        assert settled_s == pytest.approx(AIM * TARGET_S, rel=0.05)
    settled = [batch for batch in result.batches if 100 < batch.started_s < 290]
    loss = 1 - sum(batch.kept for batch in settled) / sum(batch.rows for batch in settled)
    assert loss == pytest.approx(1 - 1 / overload, rel=0.05)


def test_open_loop_violates_the_target_far_more() -> None:
    rates = np.concatenate([np.full(20, 300.0), np.full(100, 3600.0)])
    closed, open_loop = (run(law, rates) for law in ("ctrl-batch", "aurora"))
    violation = {
        law: sum(
            max(decision.delay_s - TARGET_S, 0.0) * batch.kept
            for decision, batch in zip(result.decisions, result.batches, strict=True)
            if decision.delay_s is not None
        )
        for law, result in (("closed", closed), ("open", open_loop))
    }
    assert violation["open"] > 5 * violation["closed"]


def test_ctrl_batch_does_not_overreact_to_a_very_long_batch() -> None:
    rates = np.concatenate([np.full(10, 300.0), np.full(200, 3600.0)])
    delay = {law: mean_delay_s(run(law, rates, lag=1), rates, 60, 200) for law in ("ctrl-integrating", "ctrl-batch")}
    assert delay["ctrl-batch"] == pytest.approx(AIM * TARGET_S, rel=0.1)
    assert delay["ctrl-integrating"] > 2 * TARGET_S


def test_no_row_is_shed_below_capacity() -> None:
    rates = np.random.default_rng(1).uniform(100, 700, 200)
    assert run("ctrl-batch", rates).loss_ratio == 0.0


def test_no_row_is_shed_if_longer_batches_sustain_the_load() -> None:
    # batches of one second sustain 850 rows/s, batches of the target duration (1.23 s) 878 rows/s; the fixed cost can
    # only be estimated from a varying load
    varied = np.random.default_rng(1).uniform(200, 700, 40)
    assert run("ctrl-batch", np.concatenate([varied, np.full(60, 865.0)]), noise=0.0).loss_ratio == 0.0


def test_shedding_ends_within_a_few_batches_of_a_burst() -> None:
    rates = np.concatenate([np.full(20, 300.0), np.full(30, 3000.0), np.full(60, 300.0)])
    result = run("ctrl-batch", rates)
    late = [d.shed_ratio for b, d in zip(result.batches, result.decisions, strict=True) if b.started_s > 56]
    assert max(late) == 0.0


def test_monitor_separates_fixed_cost_and_cost_per_row() -> None:
    monitor = BatchCostMonitor()
    for kept in (100, 400, 1000, 300, 800, 1500) * 2:
        monitor.observe(kept, FIXED_S + COST_S * kept)
    # the monitor assumes 7 % noise, and its estimates are no better than that
    assert monitor.cost_s == pytest.approx(COST_S, rel=0.07)
    assert monitor.fixed_s == pytest.approx(FIXED_S, abs=0.07 * (FIXED_S + 1000 * COST_S))


def test_rise_of_the_cost_per_row_does_not_raise_the_fixed_cost() -> None:
    """The control loop keeps the duration constant while rows decrease, so a regression would see no slope."""
    monitor = BatchCostMonitor()
    for kept in (300, 500, 1000, 400, 1000, 900):
        monitor.observe(kept, FIXED_S + COST_S * kept)
    for _ in range(8):
        monitor.observe(500, FIXED_S + 2 * COST_S * 500)
    # most of the rise is attributed to the rows
    assert monitor.cost_s is not None and monitor.cost_s > 1.5 * COST_S


def test_burst_is_not_shed_while_the_cost_per_row_is_uncertain() -> None:
    """Batches of 10 rows that take 0.15 s do not show how long 1 000 rows would take."""
    rates = np.concatenate([np.full(30, 10.0), np.full(1, 700.0), np.full(10, 10.0)])
    assert run("ctrl-batch", rates).loss_ratio == 0.0


def test_unattainable_target_warns_once_and_does_not_shed_everything() -> None:
    controller = MicroBatchController(Timeliness(0.1), make_law("ctrl-batch"))
    decisions = [
        controller.step(MicroBatch(started_s=float(k), duration_s=0.3 + 0.0001 * rows, rows=rows, kept=rows))
        for k, rows in enumerate([1000, 3000, 1000, 2000, 1500, 1200, 1000])
    ]
    warnings = [decision.warning for decision in decisions if decision.warning]
    assert len(warnings) == 1 and "unattainable-delay" in warnings[0]
    # every batch ends before the next trigger, so shedding cannot reduce the delay
    assert decisions[-1].shed_ratio == 0.0


def test_at_least_one_percent_of_the_rows_is_kept() -> None:
    controller = MicroBatchController(Timeliness(1.0), make_law("ctrl-batch"))
    for k in range(6):
        decision = controller.step(MicroBatch(k * 100.0, 100.0, 1_000_000, 1_000_000))
    assert decision.shed_ratio <= MOST_SHED


def test_resumed_controller_decides_the_same() -> None:
    rates = np.full(40, 2500.0)
    batches = run("ctrl-batch", rates).batches
    first, second = (MicroBatchController(Timeliness(2.0), make_law("ctrl-batch")) for _ in range(2))
    for batch in batches[:10]:
        first.step(batch)
    second.resume(json.loads(json.dumps(first.snapshot())))
    # the first batch after a restart is ignored; from the next one on both controllers agree
    second.step(batches[9])
    for batch in batches[10:20]:
        assert first.step(batch).shed_ratio == second.step(batch).shed_ratio


def test_empty_batch_keeps_the_ratio_and_long_silence_ends_shedding() -> None:
    controller = MicroBatchController(Timeliness(2.0), make_law("ctrl-batch"))
    for k in range(4):
        ratio = controller.step(MicroBatch(k * 5.0, 5.0, 10_000, 10_000)).shed_ratio
    assert ratio > 0.0
    assert controller.step(MicroBatch(20.0, 0.1, 0, 0)).shed_ratio == ratio
    # the last batch with rows began at 15 s and took 5 s; shedding ends one target delay (2 s) later
    assert controller.silence(21.9) == ratio
    assert controller.silence(22.1) == 0.0


def test_overdue_batch_raises_the_shed_ratio_before_it_ends() -> None:
    controller = MicroBatchController(Timeliness(TARGET_S), make_law("ctrl-batch"))
    for k, rows in enumerate((100, 400, 200, 600, 300)):
        controller.step(MicroBatch(float(k), FIXED_S + COST_S * rows, rows, rows))
    # the next batch begins at 5 s and may take 2·0.92/1.5 s
    assert controller.overdue_s(6.0) == 0.0 and not controller.overdue(6.0)
    assert controller.overdue(7.0)
    first = controller.shed_ratio
    assert first > 0.0
    # the longer the batch takes, the more rows it must contain, and the more have arrived since
    assert controller.overdue(8.0) and controller.shed_ratio > first


def test_late_decisions_do_not_double_the_largest_delay() -> None:
    rates = np.concatenate([np.random.default_rng(2).uniform(100, 400, 20), np.full(60, 3500.0)])
    in_time, late = (run("ctrl-batch", rates, lag=lag) for lag in (0, 1))
    # without the check of the running batch a second, much longer batch would be processed whole
    assert np.nanmax(late.delays_s) < 2 * np.nanmax(in_time.delays_s)
