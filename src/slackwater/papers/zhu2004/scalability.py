"""Fig. 7 and §5: evaluations missed under overload, and what the order of evaluation saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slackwater.control.deferral.model import deferral
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.zhu2004.charts import axes_of, save
from slackwater.sim.virtual_cpu import Load, mixed_costs, run_processor

TICK_S = 1.0
CONFIDENCE = 0.9
COUNTS = (1_000, 2_000, 3_000, 4_000, 6_000, 10_000, 15_000, 20_000)
SIGMAS = (3.0, 5.0, 8.0)
HORIZON_S = 60.0


def load_of(queries: int, sigmas: float | None, by: str = "edf", horizon: float = HORIZON_S) -> Load:
    """The load of queries with a bound of ``sigmas`` σ of a tick. None means evaluation at every tick."""
    one = np.ones(queries)
    interval = one * TICK_S
    if sigmas is not None:
        wait = deferral(sigmas * one, 0.0 * one, one, CONFIDENCE * one)
        interval = np.maximum(np.floor(wait), 1.0) * TICK_S
    return run_processor(
        interval, mixed_costs(queries, deferring=sigmas is not None), 0.0 * one, one, by=by, horizon=horizon
    )


def overload(load: float, by: str, seed: int = 0) -> Load:
    """The load of varied queries that need ``load`` times the capacity of the processor."""
    draw = np.random.default_rng(seed)
    queries = 4_000
    cost = mixed_costs(queries, deferring=True)
    interval = np.maximum(np.floor(draw.lognormal(1.5, 0.7, queries)), 1.0) * TICK_S
    interval *= float(np.sum(cost / interval)) / load
    diffusion, drift = draw.lognormal(0.0, 1.0, queries), 0.1 * draw.standard_normal(queries)
    return run_processor(interval, cost, drift, diffusion, by=by, horizon=90.0, seed=seed)


def figure_7(folder: Path, report: Report) -> list[Claim]:
    """Missed evaluations by the number of queries, then the orders of evaluation under overload."""
    figure, axes = axes_of(1, 1)
    axis, first_missed = axes[0][0], {}
    curves: list[tuple[str, float | None]] = [("naive", None), *((f"bound {s:g}σ", s) for s in SIGMAS)]
    for at, (label, sigmas) in enumerate(curves):
        report(at / 8, label)
        missed = [load_of(count, sigmas).missed_ratio for count in COUNTS]
        axis.plot(COUNTS, [100 * share for share in missed], "o-", label=label)
        over = [count for count, share in zip(COUNTS, missed, strict=True) if share > 0.005]
        first_missed[label] = over[0] if over else None
    axis.set(xlabel="queries", ylabel="missed (%)")
    axis.legend()
    save(figure, folder / "figure-7.png")
    naive = first_missed["naive"]
    later = [first_missed[f"bound {s:g}σ"] for s in SIGMAS]
    limits = [float("inf") if count is None else count for count in later]
    claims = [
        Claim(
            "7",
            "naive begins to miss at 3,000 queries; deferring scales further, the more the larger the bound",
            f"misses begin at: naive {naive:,}; "
            + "; ".join(
                f"{s:g}σ {f'{count:,}' if count else f'beyond {COUNTS[-1]:,}'}"
                for s, count in zip(SIGMAS, later, strict=True)
            ),
            naive is not None and 3_000 <= naive <= 4_000 and limits == sorted(limits) and limits[0] >= naive,
            "p = 0.9, virtual processor",
        )
    ]
    for at, load in enumerate((1.5, 3.0)):
        report((5 + at) / 8, f"overload {load:g}×")
        found = {by: overload(load, by) for by in ("fifo", "edf", "least-penalty")}
        text = "; ".join(f"{by}: {run.missed_ratio:.1%}, {run.penalty:,.0f}" for by, run in found.items())
        best = found["least-penalty"].penalty <= min(found["fifo"].penalty, found["edf"].penalty)
        claims.append(
            Claim("7", "§5's order keeps the total penalty low", f"missed, penalty at {load:g}× load: {text}", best)
        )
    return claims
