"""What one micro-batch did to a promise: one point of its series."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.ledger import Ledger
from slackwater.watching.standing import Standing

QUANTILES = (0.5, 0.9, 0.99, 1.0)
"""Of lateness; the last is the longest."""

BINS_PER_DECADE = 8
_MOST_BIN = 9 * BINS_PER_DECADE


@dataclass(frozen=True, slots=True)
class Lateness:
    """How far rows were behind the arrival clock at the end of their micro-batch: what the wait is compared with.

    A row is late if it is further behind than the wait. ``bins`` are counts on a logarithmic grid, eight a decade of
    milliseconds; whatever is not behind at all is in bin −1.
    """

    quantiles_ms: tuple[float, ...]
    bins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, behind_ms: NDArray[np.float64], counts: NDArray[np.int64]) -> Lateness | None:
        """The lateness of weighted rows.

        >>> Lateness.of(np.array([10.0, 1000.0]), np.array([99, 1])).quantiles_ms
        (10.0, 10.0, 10.0, 1000.0)
        """
        rows = int(counts.sum())
        if not rows:
            return None
        order = np.argsort(behind_ms, kind="stable")
        reached = np.cumsum(counts[order])
        places = [min(int(np.searchsorted(reached, math.ceil(q * rows))), len(order) - 1) for q in QUANTILES]
        sizes = np.floor(BINS_PER_DECADE * np.log10(np.maximum(behind_ms, 0.5)))
        numbers, where = np.unique(np.clip(sizes, -1, _MOST_BIN).astype(int), return_inverse=True)
        summed = np.bincount(where, weights=counts).astype(int)
        return cls(
            tuple(round(float(behind_ms[order[place]]), 3) for place in places),
            tuple(zip(numbers.tolist(), summed.tolist(), strict=True)),
        )


def bin_edges_ms(number: int) -> tuple[float, float]:
    """Where a bin of lateness begins and ends.

    >>> bin_edges_ms(8)[0], bin_edges_ms(16)[0]
    (10.0, 100.0)
    """
    return 10 ** (number / BINS_PER_DECADE), 10 ** ((number + 1) / BINS_PER_DECADE)


@dataclass(frozen=True, slots=True)
class Point:
    """One micro-batch of one promise. Counts are over the whole run; None is what the promise does not have."""

    at_ms: float
    batch: int
    ledger: Ledger
    cause: str = ""
    heartbeat_ms: float | None = None
    wait_ms: float | None = None
    mean_wait_ms: float | None = None
    lateness: Lateness | None = None
    delay_s: float | None = None
    mean_delay_s: float | None = None
    shed_ratio: float | None = None
    load_per_s: float | None = None
    capacity_per_s: float | None = None
    backlog_rows: float | None = None
    row_cost_s: float | None = None
    duration_s: float | None = None
    state_rows: int | None = None
    results: int | None = None
    late_panes: int | None = None
    window_ms: tuple[float, float] | None = None
    sources: tuple[tuple[str, int, float], ...] = ()
    standing: Standing | None = None

    def as_json(self) -> dict[str, Any]:
        """The point as plain values, without what it does not have."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["ledger"] = {k: v for k, v in self.ledger.as_json().items() if v}
        if self.lateness is not None:
            values["lateness"] = [self.lateness.quantiles_ms, self.lateness.bins]
        if self.standing is not None:
            values["standing"] = self.standing.as_json()
        return {name: value for name, value in values.items() if value is not None and value != ()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Point:
        """The inverse of ``as_json``; a name that is not known is left aside."""
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        known["ledger"] = Ledger.from_json(values["ledger"])
        if "lateness" in known:
            quantiles, bins = known["lateness"]
            known["lateness"] = Lateness(tuple(quantiles), tuple((int(b), int(n)) for b, n in bins))
        if "standing" in known:
            known["standing"] = Standing(**known["standing"])
        if "window_ms" in known:
            known["window_ms"] = tuple(known["window_ms"])
        if "sources" in known:
            known["sources"] = tuple((str(s), int(n), float(b)) for s, n, b in known["sources"])
        return cls(**known)
