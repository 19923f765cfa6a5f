"""Figures 3 and 4 of Kim 2010: the mean-distance method against the largest delay, and its measured drop ratio."""

from __future__ import annotations

from pathlib import Path

from slackwater.papers.panels import Panel, draw
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.runs import outcome_of
from slackwater.sim.driver import Outcome
from slackwater.sim.streams.kim2010 import kim2010
from slackwater.units import percent

SEED = 0
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DROP_RATIOS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
ROWS = 1_000_000
METHODS = {"largest delay": "max-delay", "mean distance": "mean-distance"}


def figure_3(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> list[Claim]:
    """Buffer size and drops of both methods at DRATIO 0 %, by the size of the data."""
    runs: dict[str, list[Outcome]] = {name: [] for name in METHODS}
    for k, rows in enumerate(sizes):
        trace = kim2010(SEED, rows)
        for name, method in METHODS.items():
            report(k / len(sizes), f"{rows} rows, {name}")
            runs[name].append(outcome_of(trace, method, 0.0))
    draw(
        folder / "figure_3.png",
        "Kim 2010, Fig. 3: DRATIO 0 %",
        [
            Panel(
                "a) buffer size",
                "rows of data",
                "buffer, rows",
                sizes,
                {name: [run.mean_buffer_rows for run in runs[name]] for name in METHODS},
                log_x=True,
            ),
            Panel(
                "b) number of tuple drops",
                "rows of data",
                "drops, rows",
                sizes,
                {name: [float(run.late) for run in runs[name]] for name in METHODS},
                log_x=True,
            ),
        ],
    )
    pairs = list(zip(runs["mean distance"], runs["largest delay"], strict=True))
    gaps = [ours.mean_buffer_rows / theirs.mean_buffer_rows - 1.0 for ours, theirs in pairs]
    gap_by_size = ", ".join(f"{size}: {100 * gap:+.1f} %" for size, gap in zip(sizes, gaps, strict=True))
    drops = ", ".join(f"{size}: {o.late} against {t.late}" for size, (o, t) in zip(sizes, pairs, strict=True))
    return [
        Claim(
            "3a",
            "the buffer sizes of both methods converge to the same value as the data grows",
            f"mean distance against largest delay, by rows: {gap_by_size}",
            abs(gaps[-1]) < abs(gaps[0]) and abs(gaps[-1]) <= 0.05,
            "converged: within 5 %",
        ),
        Claim(
            "3b",
            "the mean-distance method drops fewer rows",
            f"rows dropped, by rows of data: {drops}",
            all(ours.late < theirs.late for ours, theirs in pairs),
        ),
    ]


def figure_4(folder: Path, report: Report, rows: int = ROWS) -> list[Claim]:
    """Measured drop ratio against the specified one."""
    trace = kim2010(SEED, rows)
    measured: list[float] = []
    for k, ratio in enumerate(DROP_RATIOS):
        report(k / len(DROP_RATIOS), f"D = {percent(ratio)}")
        measured.append(outcome_of(trace, "mean-distance", ratio).drop_ratio)
    percents = [100 * ratio for ratio in DROP_RATIOS]
    draw(
        folder / "figure_4.png",
        "Kim 2010, Fig. 4: specified and measured",
        [
            Panel(
                "mean distance with the periodic offset",
                "specified drop ratio, %",
                "drops, %",
                percents,
                {"measured": [100 * ratio for ratio in measured], "specified": percents},
            )
        ],
    )
    pairs = list(zip(DROP_RATIOS, measured, strict=True))
    return [
        Claim(
            "4",
            "the given drop ratios are not violated",
            ", ".join(f"{percent(specified)}: {percent(ratio)}" for specified, ratio in pairs),
            all(ratio <= specified for specified, ratio in pairs),
        )
    ]
