"""Figures with a grid of panels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def axes_of(columns: int, rows: int) -> tuple[Any, Any]:
    """An empty figure and its axes, indexed by row and column."""
    return plt.subplots(rows, columns, figsize=(4 * columns, 3.2 * rows), squeeze=False)


def save(figure: Any, path: Path) -> None:
    """Write the figure to a file and close it."""
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
