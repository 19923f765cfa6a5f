"""The simulated queue, its inputs, and the three failures of open-loop control (Tu 2006, Fig. 8)."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.control.shedding import law_names
from slackwater.sim.shedding import (
    Outcome,
    Setup,
    constant_cost,
    eventful_cost,
    pareto_rates,
    rows_from_rates,
    run,
    step_rates,
    web_rates,
)

CAPACITY_PER_S = 190.0
HEADROOM = 0.97
COST_S = HEADROOM / CAPACITY_PER_S


def outcome(law: str, rates: np.ndarray, actuator: str = "entry", period_s: float = 1.0) -> Outcome:
    seconds = len(rates)
    setup = Setup(rows_from_rates(rates), constant_cost(seconds, COST_S), seconds, actuator=actuator, period_s=period_s)
    return run(law, setup)


def test_rows_are_conserved_and_served_in_order() -> None:
    rates = np.full(30, 400.0)
    result = outcome("ctrl", rates, "queue")
    done = np.isfinite(result.delays_s)
    assert result.rows == 12_000
    assert result.shed + done.sum() == result.rows
    assert (np.diff((result.arrivals_s + result.delays_s)[done]) > 0).all()
    assert (result.delays_s[done] >= COST_S / HEADROOM - 1e-12).all()


def test_delay_without_shedding_is_that_of_a_queue() -> None:
    result = outcome("none", np.full(20, 380.0))
    # at twice the capacity row i arrives at i/380 and leaves at (i + 1)/190
    row = np.arange(result.rows)
    assert result.delays_s == pytest.approx((row + 1) / 190 - row / 380)


def test_headroom_is_measured() -> None:
    result = outcome("ctrl", np.full(60, 400.0))
    assert result.signals["headroom"][-1] == pytest.approx(HEADROOM, abs=0.005)


@pytest.mark.parametrize("law", ["ctrl", "ctrl-integrating", "baseline"])
@pytest.mark.parametrize("overload", [2.0, 4.0])
@pytest.mark.parametrize("actuator", ["entry", "queue"])
def test_feedback_settles_at_the_target_without_excess_loss(law: str, overload: float, actuator: str) -> None:
    result = outcome(law, np.full(200, overload * CAPACITY_PER_S), actuator)
    settled = result.mean_delay_s()[60:]
    assert settled.mean() == pytest.approx(2.0, rel=0.05)
    assert result.loss_ratio == pytest.approx(1 - 1 / overload, rel=0.05)


def test_shedding_ends_soon_after_a_burst() -> None:
    rates = np.concatenate([np.full(40, 100.0), np.full(20, 600.0), np.full(60, 100.0)])
    shed = outcome("ctrl", rates).signals["shed_ratio"]
    assert shed[:41].max() == 0.0
    assert shed[45:60].min() > 0.5
    assert shed[70:].max() == 0.0


def test_open_loop_is_unstable_when_the_rate_keeps_growing() -> None:
    # the rate grows by 5 % per second, so every second 5 % of the capacity too much is admitted
    rates = CAPACITY_PER_S * 1.05 ** np.arange(60)
    delay = outcome("aurora", rates).mean_delay_s()
    assert delay[55] > delay[20] + 1.0 and delay[55] > 2.5
    # e = −bias·(1 + a)/((b0 + b1)·capacity) = −0.05·0.2/0.09
    assert outcome("ctrl", rates).mean_delay_s()[30:].mean() == pytest.approx(2.0 + 0.05 * 0.2 / 0.09, rel=0.1)


def test_open_loop_settles_at_the_wrong_value_after_a_step() -> None:
    # the first second after the step brings (1500 − 190)/190 = 6.9 s of excess work
    rates = step_rates(120, 150.0, 1500.0)
    assert outcome("aurora", rates).mean_delay_s()[12:].min() > 4.0
    assert outcome("ctrl", rates).mean_delay_s()[60:].mean() == pytest.approx(2.0, rel=0.05)


def test_open_loop_sheds_unnecessarily() -> None:
    rates = step_rates(20, 100.0, 210.0)
    # in the ten seconds after the step 200 excess rows arrive, fewer than the 380 that the target allows to wait
    assert outcome("none", rates).max_overshoot_s == 0.0
    open_loop, closed_loop = outcome("aurora", rates), outcome("ctrl", rates)
    assert open_loop.shed > 0 and closed_loop.shed == 0


def test_target_can_change_during_a_run() -> None:
    seconds = 150
    setup = Setup(
        rows_from_rates(np.full(seconds, 400.0)),
        constant_cost(seconds, COST_S),
        seconds,
        targets=((0.0, 1.0), (50.0, 3.0), (100.0, 5.0)),
    )
    delay = run("ctrl", setup).mean_delay_s()
    for (start, end), target in (((30, 49), 1.0), ((75, 99), 3.0), ((125, 149), 5.0)):
        assert delay[start:end].mean() == pytest.approx(target, rel=0.06)


@pytest.mark.parametrize("law", law_names())
def test_same_seed_gives_the_same_outcome(law: str) -> None:
    rng = np.random.default_rng(3)
    rates, cost = pareto_rates(rng, 40, 250.0), eventful_cost(rng, 40)
    setup = Setup(rows_from_rates(rates, rng), cost, 40, cost_spread=0.5)
    assert run(law, setup).as_json() == run(law, setup).as_json()


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 1.5])
def test_pareto_rates_have_the_given_mean_for_every_shape(beta: float) -> None:
    rates = pareto_rates(np.random.default_rng(0), 4000, 250.0, beta)
    assert rates.mean() == pytest.approx(250.0)


def test_pareto_rates_vary_more_for_smaller_shapes() -> None:
    spread = [pareto_rates(np.random.default_rng(0), 40_000, 250.0, beta).std() for beta in (0.1, 0.5, 1.0, 1.5)]
    assert spread == sorted(spread, reverse=True)


def test_web_rates_have_the_given_mean() -> None:
    assert web_rates(np.random.default_rng(0), 400, 250.0).mean() == pytest.approx(250.0)
