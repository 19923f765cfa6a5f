"""One point of a promise's series: the state of the promise after one micro-batch."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.ledger import Ledger
from slackwater.watching.precision import PrecisionCounts

QUANTILES = (0.5, 0.9, 0.99, 1.0)
"""The quantiles of lateness that are recorded; 1.0 is the maximum."""

BINS_PER_DECADE = 8
_MAX_BIN = 9 * BINS_PER_DECADE


@dataclass(frozen=True, slots=True)
class Lateness:
    """How far the rows of a micro-batch were behind the arrival clock at its end: lateness, and the time since arrival.

    A row that is further behind than the wait is late. ``quantiles_ms`` belong to ``QUANTILES``. ``bins`` are
    (bin, rows) pairs on a logarithmic grid with eight bins per decade; rows that are not behind are in bin −1.
    """

    quantiles_ms: tuple[float, ...]
    bins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, behind_ms: NDArray[np.float64], counts: NDArray[np.int64]) -> Lateness | None:
        """The lateness of ``counts`` rows that are ``behind_ms`` each; None without rows.

        >>> Lateness.of(np.array([10.0, 1000.0]), np.array([99, 1])).quantiles_ms
        (10.0, 10.0, 10.0, 1000.0)
        """
        rows = int(counts.sum())
        if not rows:
            return None
        bin_of = np.floor(BINS_PER_DECADE * np.log10(np.maximum(behind_ms, 0.5)))
        numbers, inverse = np.unique(np.clip(bin_of, -1, _MAX_BIN).astype(int), return_inverse=True)
        rows_per_bin = np.bincount(inverse, weights=counts).astype(int)
        return cls(
            quantiles_of(behind_ms, counts),
            tuple(zip(numbers.tolist(), rows_per_bin.tolist(), strict=True)),
        )


def quantiles_of(values_ms: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[float, ...]:
    """The ``QUANTILES`` of values that stand for some rows each."""
    order = np.argsort(values_ms, kind="stable")
    ranks = np.cumsum(rows[order])
    positions = [min(int(np.searchsorted(ranks, math.ceil(q * ranks[-1]))), len(order) - 1) for q in QUANTILES]
    return tuple(round(float(values_ms[order[position]]), 3) for position in positions)


def bin_edges_ms(number: int) -> tuple[float, float]:
    """The lower and upper edge of a bin of lateness.

    >>> bin_edges_ms(8)[0], bin_edges_ms(16)[0]
    (10.0, 100.0)
    """
    return 10 ** (number / BINS_PER_DECADE), 10 ** ((number + 1) / BINS_PER_DECADE)


@dataclass(frozen=True, slots=True)
class Point:
    """The state of one promise after one micro-batch. A field that does not apply to the promise is None.

    ``ledger``, ``results``, ``late_panes`` and ``precision`` count over the whole run; the other fields describe the
    micro-batch. ``results`` is None where nobody counts them. ``open_rows`` are in windows that are still open;
    ``window_ms`` is the newest window that the micro-batch closed. ``sources`` are (name, rows, ms behind the arrival
    clock) triples, ``losses`` (name, late rows, invalid rows) triples of the sources that lost rows. ``problem_rows``
    are sampled (problem, row as JSON) pairs, ``normality`` (stream, p-value of its increments) pairs.

    ``run_lateness_ms`` and ``recent_lateness_ms`` are the ``QUANTILES`` of arrival − event time over the run and over
    the last five minutes. ``span_ms`` is the time from the first to the last arrival in the micro-batch: rows are
    behind the clock at its end by their lateness and by a part of it.
    """

    at_ms: float
    batch: int
    ledger: Ledger
    cause: str = ""
    heartbeat_ms: float | None = None
    wait_ms: float | None = None
    mean_wait_ms: float | None = None
    lateness: Lateness | None = None
    run_lateness_ms: tuple[float, ...] | None = None
    recent_lateness_ms: tuple[float, ...] | None = None
    span_ms: float | None = None
    delay_s: float | None = None
    mean_delay_s: float | None = None
    target_s: float | None = None
    mean_target_s: float | None = None
    shed_ratio: float | None = None
    load_per_s: float | None = None
    capacity_per_s: float | None = None
    backlog_rows: float | None = None
    limit_decides: bool | None = None
    row_cost_s: float | None = None
    duration_s: float | None = None
    state_rows: int | None = None
    results: int | None = None
    late_panes: int | None = None
    open_rows: int | None = None
    window_ms: tuple[float, float] | None = None
    sources: tuple[tuple[str, int, float], ...] = ()
    losses: tuple[tuple[str, int, int], ...] = ()
    problem_rows: tuple[tuple[str, str], ...] = ()
    precision: PrecisionCounts | None = None
    normality: tuple[tuple[str, float], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The point as JSON values, without the fields that are None or empty."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["ledger"] = {k: v for k, v in self.ledger.counts().items() if v}
        if self.lateness is not None:
            values["lateness"] = [self.lateness.quantiles_ms, self.lateness.bins]
        if self.precision is not None:
            values["precision"] = self.precision.as_json()
        return {name: value for name, value in values.items() if value is not None and value != ()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Point:
        """The inverse of ``as_json``; unknown names are ignored."""
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        known["ledger"] = Ledger.from_json(values["ledger"])
        if "lateness" in known:
            quantiles, bins = known["lateness"]
            known["lateness"] = Lateness(tuple(quantiles), tuple((int(b), int(n)) for b, n in bins))
        if "precision" in known:
            known["precision"] = PrecisionCounts(**known["precision"])
        for name in ("run_lateness_ms", "recent_lateness_ms"):
            if name in known:
                known[name] = tuple(known[name])
        if "window_ms" in known:
            known["window_ms"] = tuple(known["window_ms"])
        if "sources" in known:
            known["sources"] = tuple((str(s), int(n), float(b)) for s, n, b in known["sources"])
        if "losses" in known:
            known["losses"] = tuple((str(s), int(late), int(invalid)) for s, late, invalid in known["losses"])
        if "problem_rows" in known:
            known["problem_rows"] = tuple((str(problem), str(row)) for problem, row in known["problem_rows"])
        if "normality" in known:
            known["normality"] = tuple((str(s), float(p)) for s, p in known["normality"])
        return cls(**known)
