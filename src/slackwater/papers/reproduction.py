"""How a paper's experiments are described and run: figures in, claims and pictures out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a figure or table of the paper says, beside what was measured here."""

    figure: str
    paper_says: str
    measured: str
    same_conclusion: bool
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The claim as plain values."""
        return asdict(self)


Report = Callable[[float, str], None]
"""``report(done, what)``: how far an experiment is, from 0 to 1."""

Experiment = Callable[[Path, Report], list[Claim]]
"""Runs one figure: writes its pictures below the folder, tells how far it is, returns its claims."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and its experiments by figure or table ("5", "table-2")."""

    key: str
    citation: str
    readings: tuple[str, ...]
    experiments: Mapping[str, Experiment]
