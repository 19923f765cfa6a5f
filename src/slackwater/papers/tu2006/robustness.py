"""Figures 17 to 19: burstiness, changes of the target, and the control period."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.tu2006.common import LAWS, METRICS, SECONDS, SEEDS, merit, plot_lines, ratios, setup_for, times
from slackwater.sim.shedding import run

BETAS = (0.1, 0.25, 0.5, 1.0, 1.25, 1.5)
TARGETS = ((0.0, 1.0), (150.0, 3.0), (300.0, 5.0))
PERIODS_S = tuple(0.03125 * 2**i for i in range(9))


def figure_17(folder: Path, report: Report) -> list[Claim]:
    """Every figure of merit by the bias factor, relative to β = 1.5."""
    worst = {}
    for position, law in enumerate(LAWS):
        merits = []
        for done, beta in enumerate(BETAS):
            report((position + done / len(BETAS)) / len(LAWS), f"{law}, β = {beta}")
            merits.append(merit(run(law, setup_for("pareto", seed, beta=beta)) for seed in SEEDS))
        relative = np.array([ratios(one, merits[-1]) for one in merits])
        plot_lines(
            folder / f"figure_17_{law}.png",
            f"Tu 2006, Fig. 17: {law} against burstiness, relative to β = 1.5",
            [(metric, np.array(BETAS), relative[:, index]) for index, metric in enumerate(METRICS)],
            xlabel="bias factor β",
            ylabel="ratio",
            log="y",
        )
        worst[law] = float(relative[:, 0].max())
    return [
        Claim(
            "17",
            "CTRL hardly notices burstiness, AURORA does; BASELINE is not significantly affected",
            "most violations, relative to β = 1.5: " + ", ".join(f"{law} {times(worst[law])}" for law in LAWS),
            worst["ctrl"] < worst["aurora"],
        )
    ]


def settling_s(delay: np.ndarray, since: int, until: int, target_s: float) -> float:
    """Seconds until the delay first came within 10 % of its new target; NaN if it never did."""
    within = np.flatnonzero(np.abs(delay[since:until] - target_s) <= 0.1 * target_s)
    return float(within[0]) if len(within) else float("nan")


def figure_18(folder: Path, report: Report) -> list[Claim]:
    """Targets of 1, 3 and 5 s."""
    seconds = np.arange(SECONDS, dtype=np.float64)
    claims = []
    lines = []
    for done, law in enumerate((*LAWS, "ctrl-integrating")):
        report(done / 4, law)
        delay = run(law, setup_for("web", 0, targets=TARGETS)).mean_delay_s()
        lines.append((law, seconds, delay))
        settle = [
            settling_s(delay, since, until, target) for since, until, target in ((150, 300, 3.0), (300, 400, 5.0))
        ]
        mean = [float(np.nanmean(delay[start:end])) for start, end in ((170, 230), (320, 345))]
        tracks = all(abs(value - target) <= 0.15 * target for value, target in zip(mean, (3.0, 5.0), strict=True))
        says = {
            "ctrl": ("converges to the new targets very quickly", tracks),
            "baseline": ("takes very long to converge", not tracks),
            "aurora": ("does not respond to the target at all", not tracks),
            "ctrl-integrating": ("(not in the paper)", tracks),
        }[law]
        claims.append(
            Claim(
                f"18 {law}",
                says[0],
                f"within 10 % after {settle[0]:.0f} s (1 → 3 s) and {settle[1]:.0f} s (3 → 5 s); "
                f"mean {mean[0]:.2f} s at 170–230 s (target 3), {mean[1]:.2f} s at 320–345 s (target 5)",
                says[1],
                "v fills the queue to the new target within a period, as its formula says" if law == "baseline" else "",
            )
        )
    plot_lines(folder / "figure_18.png", "Tu 2006, Fig. 18: targets 1, 3, 5 s", lines)
    return claims


def figure_19(folder: Path, report: Report) -> list[Claim]:
    """CTRL with nine control periods from 31.25 ms to 8 s."""
    tables = {}
    for half, actuator in enumerate(("entry", "queue")):
        merits = []
        for done, period_s in enumerate(PERIODS_S):
            report((half + done / len(PERIODS_S)) / 2, f"T = {period_s * 1e3:g} ms ({actuator} shedder)")
            setups = (setup_for("web", seed, actuator=actuator, period_s=period_s) for seed in SEEDS)
            merits.append(merit(run("ctrl", setup) for setup in setups))
        tables[actuator] = np.array([one.as_tuple() for one in merits])
    relative = tables["entry"] / tables["entry"].min(axis=0)
    plot_lines(
        folder / "figure_19.png",
        "Tu 2006, Fig. 19: CTRL against the control period, relative to the best (entry shedder)",
        [(metric, np.array(PERIODS_S), relative[:, index]) for index, metric in enumerate(METRICS)],
        xlabel="control period T (s)",
        ylabel="ratio to the best",
        log="xy",
    )
    violations = relative[:, 0]
    best_s = PERIODS_S[int(violations.argmin())]
    shown = ", ".join(
        f"{period_s * 1e3:g} ms {times(value)}" for period_s, value in zip(PERIODS_S, violations, strict=True)
    )
    second = PERIODS_S.index(1.0)
    queue = tables["queue"]
    return [
        Claim(
            "19 (entry shedder)",
            "violations lowest for T in [250, 1000] ms (500 ms best), about 40× at 4 s; too small a T is worse too",
            f"{shown}; best {best_s * 1e3:g} ms",
            bool(0.25 <= best_s <= 1.0 and violations[7] > 2 and violations[0] > 1),
        ),
        Claim(
            "19 (queue shedder)",
            "the same",
            f"violations at 31.25 ms, 1 s, 8 s: {queue[0, 0]:.0f}, {queue[second, 0]:.0f}, {queue[-1, 0]:.0f} s; "
            f"loss {queue[0, 3]:.1%}, {queue[second, 3]:.1%}, {queue[-1, 3]:.1%}",
            bool(queue[0, 0] > queue[second, 0]),
            "with few rows per period the noise of v empties the queue: no violations, but more loss",
        ),
    ]
