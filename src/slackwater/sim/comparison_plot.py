"""Plots a comparison of methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from slackwater.sim.compare import Cell
from slackwater.units import percent

KEPT, BROKEN, YARDSTICK = "#2a7f9e", "#c8442e", "#444444"


def plot_comparison(path: Path, title: str, cells: Sequence[Cell], unit: str, per_unit: float) -> None:
    """Plot a row of panels per drop ratio: the realised ratio on the left, the mean wait on the right.

    Broken promises are red. A dashed line marks the promised ratio and the clairvoyant wait.
    """
    ratios = list(dict.fromkeys(cell.target_drop_ratio for cell in cells))
    methods = list(dict.fromkeys(cell.method for cell in cells))
    height = 0.9 + len(ratios) * (0.7 + 0.27 * len(methods))
    figure, panels = plt.subplots(len(ratios), 2, figsize=(12, height), squeeze=False, sharey="row")
    wait_unit = "s" if unit == "s" else "unit of the attribute"
    for (left, right), ratio in zip(panels, ratios, strict=True):
        row = [cell for cell in cells if cell.target_drop_ratio == ratio]
        names = [cell.method for cell in row]
        colours = [KEPT if cell.kept else BROKEN for cell in row]
        # A logarithmic axis cannot show zero.
        floor = max(ratio, 1e-6) / 1e3
        left.barh(names, [max(100 * cell.drop_ratio, 100 * floor) for cell in row], color=colours)
        left.set_xscale("log")
        left.axvline(100 * ratio, color=YARDSTICK, linestyle="--", linewidth=1.2)
        left.set_xlabel("late rows, %")
        left.set_title(f"drop ratio, promised {percent(ratio)} (dashed)", fontsize=10)
        best = row[0].clairvoyant_wait / per_unit
        waits = [cell.mean_wait / per_unit for cell in row]
        right.barh(names, waits, color=colours)
        if min([*waits, best]) > 0:
            right.set_xscale("log")
        right.axvline(best, color=YARDSTICK, linestyle="--", linewidth=1.2)
        right.set_xlabel(f"mean wait, {wait_unit}")
        right.set_title(f"wait; clairvoyant constant {best:.3g} (dashed)", fontsize=10)
        left.invert_yaxis()
        for panel in (left, right):
            panel.grid(axis="x", alpha=0.3)
            panel.set_axisbelow(True)
    figure.suptitle(f"{title} — red: promise broken", fontsize=12)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
