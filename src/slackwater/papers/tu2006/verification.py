"""Figures 5 to 7: the model (Eq. 2) against the plant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.tu2006.common import CAPACITY_PER_S, COST_S, HEADROOM, plot_lines
from slackwater.sim.shedding import Outcome, Setup, constant_cost, rows_from_rates, run, sinusoid_rates, step_rates

Floats = NDArray[np.float64]

STEP_SECONDS = 50
RATES_PER_S = (150.0, 190.0, 200.0, 300.0)
HEADROOMS = (0.95, 0.97, 1.0)
SIMULATED = "the plant here is the model's own virtual queue, so the model fits by construction"


def _run(rates: Floats) -> Outcome:
    seconds = len(rates)
    return run("none", Setup(rows_from_rates(rates), constant_cost(seconds, COST_S), seconds, headroom=HEADROOM))


def model_delay_s(outcome: Outcome, headroom: float, *, as_printed: bool = False) -> Floats:
    """The delay of the model, y(k) = c/H·q, with q(k−1) as printed or with the queue in the middle of the period."""
    queue = np.concatenate([[0.0], outcome.signals["backlog"][:-1]])
    if not as_printed:
        # differs: the measured delay is the mean over the rows of a period, and the queue grows during it
        queue = (queue + outcome.signals["backlog"]) / 2
    return np.asarray(queue * COST_S / headroom, dtype=np.float64)  # Tu 2006, Eq. (2)


def figure_5(folder: Path, report: Report) -> list[Claim]:
    """The response of the delay to steps of the input rate."""
    lines, slopes = [], {}
    seconds = np.arange(STEP_SECONDS, dtype=np.float64)
    for done, rate in enumerate(RATES_PER_S):
        report(done / len(RATES_PER_S), f"step to {rate:.0f}/s")
        delay = _run(step_rates(STEP_SECONDS, 50.0, rate)).mean_delay_s()
        lines.append((f"{rate:.0f}/s", seconds, delay))
        slopes[rate] = np.diff(delay)[12:]
    plot_lines(folder / "figure_5.png", "Tu 2006, Fig. 5: responses to a step at 10 s", lines)
    flat = max(float(np.abs(slopes[rate]).max()) for rate in (150.0, 190.0))
    steady = {rate: (float(slopes[rate].mean()), float(slopes[rate].std())) for rate in (200.0, 300.0)}
    growth = ", ".join(
        f"{rate:.0f}/s: {mean:.4f} ± {spread:.4f} s per period" for rate, (mean, spread) in steady.items()
    )
    return [
        Claim(
            "5B",
            "constant delay up to 190/s, growing without end above",
            f"up to 190/s the delay changes by at most {flat * 1e3:.3g} ms per period; {growth}",
            flat < 1e-3 and all(mean > 0.01 for mean, _ in steady.values()),
            SIMULATED,
        ),
        Claim(
            "5C",
            "Δy converges quickly to a stable value: an integrator, no other dynamics",
            ", ".join(
                f"{rate:.0f}/s: Δy {mean:.4f} s, the model says {rate / CAPACITY_PER_S - 1:.4f} s"
                for rate, (mean, _) in steady.items()
            ),
            all(
                abs(mean - (rate / CAPACITY_PER_S - 1)) < 0.05 * (rate / CAPACITY_PER_S - 1)
                for rate, (mean, _) in steady.items()
            ),
        ),
    ]


def figure_6(folder: Path, report: Report) -> list[Claim]:
    """The error of the model for three headrooms."""
    outcome = _run(step_rates(STEP_SECONDS, 50.0, 300.0))
    delay = outcome.mean_delay_s()
    seconds = np.arange(STEP_SECONDS, dtype=np.float64)
    found = float(outcome.signals["headroom"][-1])
    lines, claims = [], []
    for as_printed in (True, False):
        queue = "q(k−1), as printed" if as_printed else "q in the middle of the period"
        errors = {h: model_delay_s(outcome, h, as_printed=as_printed) - delay for h in HEADROOMS}
        lines += [(f"H = {h}, {queue}", seconds, error) for h, error in errors.items()]
        rms = {h: float(np.sqrt(np.nanmean(error[10:] ** 2))) for h, error in errors.items()}
        claims.append(
            Claim(
                f"6 ({queue})",
                "H = 0.97 fits far better than two other values",
                "rms error "
                + ", ".join(f"H {h}: {error * 1e3:.3g} ms" for h, error in rms.items())
                + f"; identified while running: H = {found:.4f}",
                min(rms, key=lambda h: rms[h]) == HEADROOM and abs(found - HEADROOM) < 0.005,
                "the queue grows during a period, and q(k−1) is too short for its rows: a lower H makes up for it"
                if as_printed
                else SIMULATED,
            )
        )
    title = "Tu 2006, Fig. 6B: error of the model"
    plot_lines(folder / "figure_6.png", title, lines, ylabel="modelled − measured delay (s)")
    return claims


def figure_7(folder: Path, report: Report) -> list[Claim]:
    """The model under a sinusoidal rate."""
    rates = sinusoid_rates(200)
    outcome = _run(rates)
    delay = outcome.mean_delay_s()
    error = model_delay_s(outcome, HEADROOM) - delay
    seconds = np.arange(len(rates), dtype=np.float64)
    plot_lines(
        folder / "figure_7.png",
        "Tu 2006, Fig. 7: sinusoidal rate in [0, 400]/s",
        [("measured delay", seconds, delay), ("error of the model", seconds, error)],
    )
    worst, largest = float(np.nanmax(np.abs(error))), float(np.nanmax(delay))
    return [
        Claim(
            "7",
            "small, periodic modelling errors",
            f"largest error {worst:.3f} s at delays up to {largest:.1f} s",
            worst < 0.1 * largest,
            SIMULATED,
        )
    ]
