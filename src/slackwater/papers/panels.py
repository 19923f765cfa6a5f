"""Line charts in panels side by side. This module needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart. ``lines`` maps a name to its values at ``x``; ``bounds`` are drawn as dashed horizontal lines."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float | str]
    lines: Mapping[str, Sequence[float]]
    bounds: Sequence[float] = field(default=())
    log_x: bool = False
    log_y: bool = False


def draw(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Write the panels side by side to one file."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5.6 * len(panels), 4.2), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        for (name, values), marker in zip(panel.lines.items(), "osD^vPX*hd<>" * 4, strict=False):
            axis.plot(panel.x, values, marker=marker, label=name)
        for bound in panel.bounds:
            axis.axhline(bound, color="#444444", linestyle="--", linewidth=1)
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.x_label)
        axis.set_ylabel(panel.y_label)
        if panel.log_x:
            axis.set_xscale("log")
        if panel.log_y:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(title, fontsize=12)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
