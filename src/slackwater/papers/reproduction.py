"""The interface of a reproduction: a ``Paper`` has experiments, and an experiment returns claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a figure or table of the paper, and the measurement here."""

    figure: str
    paper_says: str
    measured: str
    same_conclusion: bool
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The claim as JSON values."""
        return asdict(self)


Report = Callable[[float, str], None]
"""``report(done, stage)``: the progress of an experiment, from 0 to 1, and the name of its stage."""

Experiment = Callable[[Path, Report], list[Claim]]
"""Reproduces one figure: writes its plots to the folder, reports its progress and returns its claims."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper. ``experiments`` maps a figure or table ("5", "table-2") to its experiment.

    ``readings`` say how ambiguous places of the paper are understood.
    """

    key: str
    citation: str
    readings: tuple[str, ...]
    experiments: Mapping[str, Experiment]
