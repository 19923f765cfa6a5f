"""Plot of the advice: wait by drop ratio, and wait over time. This module needs matplotlib."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from slackwater.spark.command.advise import Advice
from slackwater.units import percent


def plot_advice(path: Path, title: str, advice: Advice) -> None:
    """Write a PNG: left the wait for each drop ratio, right the wait for the promise over arrival time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4))
    left.plot([100 * ratio for ratio, _ in advice.curve], [wait / 1e3 for _, wait in advice.curve], marker="o")
    left.axvline(100 * advice.drop_ratio, color="#444444", linestyle="--", linewidth=1)
    left.set_xscale("log")
    if min(wait for _, wait in advice.curve) > 0:
        left.set_yscale("log")
    left.set_xlabel("drop ratio, %")
    left.set_ylabel("wait, s")
    left.set_title("smallest constant wait", fontsize=10)
    times = [dt.datetime.fromtimestamp(period.start_ms / 1e3, dt.UTC) for period in advice.periods]
    right.step(times, [period.wait_ms / 1e3 for period in advice.periods], where="post", marker="o")
    right.axhline(advice.wait_ms / 1e3, color="#444444", linestyle="--", linewidth=1)
    right.set_ylim(bottom=0)
    right.set_ylabel("wait, s")
    right.set_title(f"wait for {percent(advice.drop_ratio)}, by arrival (dashed: overall)", fontsize=10)
    right.tick_params(axis="x", rotation=30)
    for panel in (left, right):
        panel.grid(alpha=0.3)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
