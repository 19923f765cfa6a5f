"""Table 2, Fig. 5 and Fig. 6: the fidelity of deferred answers, and the number of evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.zhu2004 import data
from slackwater.papers.zhu2004.charts import axes_of, save
from slackwater.sim import standing

CONFIDENCES = (0.95, 0.9, 0.85)
PAPER = {
    ("avg", "shares"): (0.9400, 0.8992, 0.8684),
    ("avg", "temp"): (0.9466, 0.9188, 0.8874),
    ("max", "shares"): (0.9815, 0.9747, 0.9689),
    ("max", "temp"): (0.9890, 0.9870, 0.9853),
}
QUERIES, OF = 10, 9
WINDOW_TICKS = 30
LEAST_DEFERRAL = 5.0
BOUNDS = {"avg": (7.0, 8.0, 10.0, 12.0, 14.0), "max": (3.0, 4.0, 5.0, 6.0, 8.0)}
"""Bounds in standard deviations of the average's own increment. With them deferrals take five ticks or more."""

INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class Point:
    """Results at one bound and confidence, as means over the ten queries."""

    sigmas: float
    confidence: float
    fidelity: float
    least_fidelity: float
    hit_rate: float
    evaluations: float
    optimal: float
    naive: float

    @property
    def deferral_ticks(self) -> float:
        """The mean number of ticks between two evaluations."""
        return self.naive / self.evaluations


@cache
def points(name: str, aggregate: str, method: str) -> tuple[Point, ...]:
    """The results of one data set, aggregate and method at all bounds and confidences, from one replay."""
    bounds: tuple[float, ...]
    if name == INDEPENDENT:
        table, bounds = data.independent(OF, QUERIES), BOUNDS["avg"]
        weights = np.kron(np.eye(QUERIES), np.full(OF, 1.0 / OF))
    else:
        table, bounds = data.streams()[name], BOUNDS[aggregate]
        weights = standing.average_queries(data.STREAMS, OF, QUERIES)
    average = table.filled() @ weights[0]
    sigma = float(np.nanstd(np.diff(average)))
    cases = [(bound, confidence) for bound in bounds for confidence in CONFIDENCES]
    queries = QuerySet.of(
        np.arange(len(cases) * QUERIES),
        np.tile(weights, (len(cases), 1)),
        np.repeat([sigma * bound for bound, _ in cases], QUERIES),
        np.repeat([confidence for _, confidence in cases], QUERIES),
    )
    options = EvaluatorOptions(
        aggregate="linear" if aggregate == "avg" else "max",
        window=None if aggregate == "avg" else WINDOW_TICKS * table.period_ms,
        method=method,
    )
    truth = standing.true_answers(table, queries, options)
    run = standing.run_standing(table, queries, options, truth=truth)
    fewest = standing.optimal_evaluations(truth, queries)
    found = []
    for at, (bound, confidence) in enumerate(cases):
        mine = slice(at * QUERIES, (at + 1) * QUERIES)
        found.append(
            Point(
                bound,
                confidence,
                float(run.fidelity[mine].mean()),
                float(run.fidelity[mine].min()),
                float(run.hit_rate[mine].mean()),
                float(run.evaluations[mine].mean()),
                float(fewest[mine].mean()),
                float(table.ticks),
            )
        )
    return tuple(found)


def _mean(found: tuple[Point, ...], confidence: float, what: str) -> float:
    return float(np.mean([getattr(point, what) for point in found if point.confidence == confidence]))


def _percents(values: list[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


def table_2(folder: Path, report: Report) -> list[Claim]:
    """Average fidelity by confidence, for the plain model and for the calibrated ones."""
    exact = [("avg", INDEPENDENT, method) for method in ("brownian", "steady", "calibrated")]
    cases = [
        (aggregate, name, method)
        for name in data.streams()
        for aggregate in ("avg", "max")
        for method in ("brownian", "calibrated", "economical")
        if (aggregate, name) != ("avg", "synthetic") and (aggregate, method) != ("max", "economical")
    ]
    claims = []
    for done, (aggregate, name, method) in enumerate([*exact, *cases]):
        report(done / len([*exact, *cases]), f"{aggregate} of {name}, {method}")
        found = points(name, aggregate, method)
        if name == INDEPENDENT:
            claims.append(_exact_claim(found, method))
        else:
            claims.append(_fidelity_claim(found, aggregate, name, method))
    return claims


def _exact_claim(found: tuple[Point, ...], method: str) -> Claim:
    hits = [_mean(found, confidence, "hit_rate") for confidence in CONFIDENCES]
    fidelity = [_mean(found, confidence, "fidelity") for confidence in CONFIDENCES]
    why = {"brownian": "; the drift of Eq. (15) is mostly noise at k = 100, and shortens every deferral"}
    return Claim(
        "table-2",
        "under Brownian motion the confidence is met, within a point: 95 / 90 / 85",
        f"hit rate {_percents(hits)}; fidelity {_percents(fidelity)}",
        all(abs(hit - confidence) <= 0.01 for hit, confidence in zip(hits, CONFIDENCES, strict=True)),
        f"avg, exact Brownian motion, {method}; bounds of 7 to 14 σ" + why.get(method, ""),
    )


def _fidelity_claim(found: tuple[Point, ...], aggregate: str, name: str, method: str) -> Claim:
    deferred = tuple(point for point in found if point.deferral_ticks >= LEAST_DEFERRAL)
    confidences = [
        confidence for confidence in CONFIDENCES if any(point.confidence == confidence for point in deferred)
    ]
    fidelity = [_mean(deferred, confidence, "fidelity") for confidence in confidences]
    hits = [_mean(deferred, confidence, "hit_rate") for confidence in confidences]
    least = [min(p.least_fidelity for p in deferred if p.confidence == confidence) for confidence in confidences]
    paper = PAPER.get((aggregate, name))
    return Claim(
        "table-2",
        f"{_percents(list(paper))} at 95 / 90 / 85" if paper else "fidelity at least the confidence",
        f"fidelity {_percents(fidelity)}; worst query {_percents(least)}; hit rate {_percents(hits)}",
        all(point.fidelity >= point.confidence for point in deferred),
        f"{aggregate}, {name}, {method}; {len(deferred)} of {len(found)} points with a deferral of "
        f"{LEAST_DEFERRAL:g} ticks or more, {_mean(deferred, 0.9, 'deferral_ticks'):.1f} ticks at 90%",
    )


def figure_5(folder: Path, report: Report) -> list[Claim]:
    """Fidelity by bound."""
    names = list(data.streams())
    claims = []
    figure, axes = axes_of(len(names), 2)
    for column, name in enumerate(names):
        for row, aggregate in enumerate(("avg", "max")):
            report((2 * column + row) / (2 * len(names)), f"{aggregate} of {name}")
            found = points(name, aggregate, "calibrated")
            axis = axes[row][column]
            for confidence in CONFIDENCES:
                mine = [point for point in found if point.confidence == confidence]
                line = axis.plot(
                    [p.sigmas for p in mine], [p.fidelity for p in mine], "o-", label=f"p = {confidence:.0%}"
                )
                axis.axhline(confidence, color=line[0].get_color(), linewidth=0.5, linestyle=":")
            axis.set(title=f"{aggregate}, {name}", xlabel="bound (σ of a tick)", ylabel="fidelity")
            ordered = all(
                _mean(found, high, "fidelity") >= _mean(found, low, "fidelity") for high, low in pairwise(CONFIDENCES)
            )
            kept = sum(point.fidelity >= point.confidence for point in found)
            claims.append(
                Claim(
                    "5",
                    "a higher p achieves a higher fidelity",
                    f"fidelity ≥ p at {kept} of {len(found)} points; ordered by p: {'yes' if ordered else 'no'}",
                    ordered and kept == len(found),
                    f"{aggregate}, {name}, calibrated",
                )
            )
    axes[0][0].legend()
    save(figure, folder / "figure-5.png")
    return claims


def figure_6(folder: Path, report: Report) -> list[Claim]:
    """Evaluations by bound: naive, ours and the offline minimum."""
    names = list(data.streams())
    claims = []
    figure, axes = axes_of(len(names), 1)
    for column, name in enumerate(names):
        report(column / len(names), name)
        found = points(name, "avg", "calibrated")
        axis = axes[0][column]
        for confidence in CONFIDENCES:
            mine = [point for point in found if point.confidence == confidence]
            axis.plot([p.sigmas for p in mine], [p.evaluations for p in mine], "o-", label=f"p = {confidence:.0%}")
        mine = [point for point in found if point.confidence == 0.9]
        axis.plot([p.sigmas for p in mine], [p.naive for p in mine], "k--", label="naive")
        axis.plot([p.sigmas for p in mine], [p.optimal for p in mine], "k:", label="optimal")
        axis.set(title=f"avg, {name}", xlabel="bound (σ of a tick)", ylabel="evaluations", yscale="log")
        text = "; ".join(f"{p.sigmas:g}σ: {p.naive:.0f} / {p.evaluations:.0f} / {p.optimal:.0f}" for p in mine)
        fewer = all(b.evaluations < a.evaluations for a, b in pairwise(mine))
        claims.append(
            Claim(
                "6",
                "savings are significant, and grow with the bound",
                f"naive / ours / optimal at p = 90%: {text}",
                fewer and all(p.evaluations < p.naive for p in mine),
                f"avg, {name}, calibrated, per query",
            )
        )
    axes[0][0].legend()
    save(figure, folder / "figure-6.png")
    return claims


def covariance(folder: Path, report: Report) -> list[Claim]:
    """The effect of the covariance: two open-loop methods that differ in nothing else."""
    names = list(data.streams())
    claims = []
    for at, name in enumerate(names):
        report(at / len(names), name)
        apart, joint = points(name, "avg", "steady"), points(name, "avg", "correlated")
        shown = [
            (_mean(found, 0.9, "fidelity"), _mean(found, 0.9, "hit_rate"), _mean(found, 0.9, "evaluations"))
            for found in (apart, joint)
        ]
        text = [f"fidelity {f:.1%}, hit rate {h:.1%}, {e:.0f} evaluations per query" for f, h, e in shown]
        claims.append(
            Claim(
                "covariance",
                "variances add (Eq. 6: independent streams)",
                f"added: {text[0]}; with covariance: {text[1]}",
                shown[0][0] >= 0.9,
                f"avg of nine, {name}, p = 90%, mean over {len(BOUNDS['avg'])} bounds, no loop",
            )
        )
    return claims
