"""The cells of the freshness benchmark: their file, their table, their summary."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from freshness_figures import Figures, Hindsight
from slackwater.units import percent

Key = tuple[str, float, float, float]
"""Stream, trigger in seconds, drop ratio, length in seconds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One stream, trigger and drop ratio: the promise and plain Spark with the constant that was best in hindsight.

    ``decision_ages``: micro-batches planned with a decision from the batch before (1), the one before that (2), …
    """

    stream: str
    trigger_s: float
    ratio: float
    seconds: float
    together: int
    delay_s: float
    window_s: float
    promise: Figures
    plain: Figures
    hindsight: Hindsight
    simulated_wait_s: float
    decision_ages: dict[int, int]

    @property
    def key(self) -> Key:
        """What distinguishes the cell from others."""
        return self.stream, self.trigger_s, self.ratio, self.seconds

    @property
    def ratios(self) -> dict[str, float | None]:
        """The promise's times divided by plain Spark's, as it ran and in hindsight."""
        a, b, best = self.promise, self.plain, self.hindsight
        by_minute = zip(a.waits_by_minute_s[1:], b.waits_by_minute_s[1:], strict=False)
        return {
            "wait": _divided(a.wait_s, b.wait_s),
            "wait_after_minute": _divided(a.wait_after_minute_s, b.wait_after_minute_s),
            "worst_minute_wait": max((x / y for x, y in by_minute if y > 0), default=None),
            "publication": _divided(a.publication_delay_s, b.publication_delay_s),
            "publication_after_minute": _divided(a.publication_after_minute_s, b.publication_after_minute_s),
            "hindsight_wait": _divided(a.wait_s, best.wait_s),
            "hindsight_wait_after_minute": _divided(a.wait_after_minute_s, best.wait_after_minute_s),
            "hindsight_publication": _divided(a.publication_delay_s, best.publication_delay_s),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Cell:
        """The inverse of ``asdict``."""
        known = {name: values[name] for name in cls.__dataclass_fields__}
        ages = {int(age): batches for age, batches in known["decision_ages"].items()}
        both = {name: Figures(**known[name]) for name in ("promise", "plain")}
        return cls(**(known | both | {"hindsight": Hindsight(**known["hindsight"]), "decision_ages": ages}))


def _divided(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def read_cells(keep: Path | None) -> list[Cell]:
    """The cells of a file; none if there is no file."""
    if keep is None or not keep.exists():
        return []
    return [Cell.from_json(json.loads(line)) for line in keep.read_text().splitlines()]


def append_cells(keep: Path | None, cells: list[Cell]) -> None:
    """Add cells to the file, if there is one."""
    if keep is not None:
        keep.parent.mkdir(parents=True, exist_ok=True)
        with keep.open("a") as file:
            file.writelines(json.dumps(asdict(cell)) + "\n" for cell in cells)


def table_of(cells: list[Cell]) -> Table:
    """One line per cell: the promise / plain Spark."""
    table = Table(title="promise / plain Spark with the best constant delay, known afterwards")
    columns = ("late", "wait s", "×", "hindsight ×", "published after s", "×", "budget", "batch s", "decisions")
    for column in ("stream", "trigger", "promised", *columns):
        table.add_column(column, justify="left" if column == "stream" else "right", no_wrap=True)
    for cell in cells:
        a, b, ratios = cell.promise, cell.plain, cell.ratios
        used = a.budget_used if a.budget_used_from_third_minute is None else a.budget_used_from_third_minute
        late = f"{percent(a.drop_ratio)} / {percent(b.drop_ratio)}"
        table.add_row(
            cell.stream,
            f"{cell.trigger_s:g} s" if cell.trigger_s else "none",
            percent(cell.ratio),
            late if a.kept else f"[red]{late}[/red]",
            f"{a.wait_s:.2f} / {b.wait_s:.2f}",
            _number(ratios["wait"]),
            _number(ratios["hindsight_wait"]),
            f"{_number(a.publication_delay_s)} / {_number(b.publication_delay_s)}",
            _number(ratios["publication"]),
            f"{used:.0%}",
            f"{a.batch_s:.2f} / {b.batch_s:.2f}",
            " ".join(f"{age}:{batches}" for age, batches in cell.decision_ages.items()),
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def summary(cells: list[Cell]) -> dict[str, Any]:
    """Kept cells, and the median and the worst of every ratio."""
    line: dict[str, Any] = {"cells": len(cells), "kept": sum(cell.promise.kept for cell in cells)}
    for name in cells[0].ratios if cells else ():
        known = [value for cell in cells if (value := cell.ratios[name]) is not None]
        line |= {f"median_{name}": statistics.median(known), f"worst_{name}": max(known)} if known else {}
    return line
