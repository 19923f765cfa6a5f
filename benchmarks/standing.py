"""A million standing aggregates on one core: a tick where all are due, a deferred tick, and the naive scheme.

Everything is measured side by side in one run, in processor time of the one thread, and on the same values in every
case. The naive scheme is shown twice: a twin of the evaluator with every query due at every tick, which sees the same
rows tick by tick, and a bare sparse product that only tells which answers have left their bound, which is the
least that evaluating everything can cost. Beside it stands the deferral that Eq. (7) gives at that bound, in
ticks: a scheme whose hit rate is the confidence cannot save more, one that holds the share of time at it can. What the
system took of the time of a tick with all due is shown too: whether the allocator gives the memory of a million answers
back after a tick, to be cleared anew for the next one, is chance, and takes up to a fifth of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
from scipy import sparse

from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet


def portfolios(queries: int, streams: int, of: int, seed: int) -> sparse.csr_matrix:
    """Random portfolios of ``of`` streams each."""
    draw = np.random.default_rng(seed)
    steps = np.cumsum(draw.integers(1, streams // of, (queries, of)), axis=1)
    members = np.sort((draw.integers(0, streams, (queries, 1)) + steps) % streams, axis=1)
    weights = draw.uniform(0.5, 1.5, queries * of)
    return sparse.csr_matrix(
        (weights, members.astype(np.int32).ravel(), np.arange(0, queries * of + 1, of, dtype=np.int32)),
        shape=(queries, streams),
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--of", type=int, default=9)
    parser.add_argument("--sigmas", type=float, default=5.0, help="the bound, in σ of the aggregate's own tick")
    parser.add_argument("--ticks", type=int, default=1200, help="warm-up ticks, until loops rest")
    parser.add_argument("--measured", type=int, default=40)
    parser.add_argument(
        "--cases",
        default="calibrated@0.95,calibrated@0.9,calibrated@0.85,calibrated@0.8,economical@0.95,economical@0.9,economical@0.85",
        help="methods and confidences",
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    weights = portfolios(options.queries, options.streams, options.of, 1)
    sigma = np.sqrt(np.asarray(weights.power(2).sum(axis=1)).ravel())
    result = {}
    for case in options.cases.split(","):
        method, _, confidence = case.partition("@")
        queries = QuerySet.of(np.arange(options.queries), weights, options.sigmas * sigma, float(confidence))
        row = measure(method, queries, options.ticks, options.measured, np.random.default_rng(7))
        row["most_ticks"] = float(np.square(options.sigmas / queries.z[0]))  # Zhu 2004, Eq. (7), without drift
        result[f"{method} {float(confidence):.0%}"] = row
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{options.queries:,} queries of {options.of} of {options.streams:,} streams, "
        f"bound {options.sigmas:g} σ per tick, one core"
    )
    print(
        f"{'':16} {'deferred':>10} {'all due':>18} {'system':>8} {'bare product':>18} {'due':>7} {'Eq. (7)':>8} "
        f"{'hit rate':>9} {'fidelity':>9} {'memory':>9}"
    )
    for method, row in result.items():
        print(
            f"{method:16} {row['deferred_ms']:8.1f}ms {row['all_due_ms']:8.0f}ms ({row['cheaper_than_all_due']:4.1f}×) "
            f"{row['all_due_system_ms']:6.0f}ms "
            f"{row['bare_product_ms']:8.1f}ms ({row['cheaper_than_bare_product']:4.1f}×) "
            f"{row['due_ratio']:7.1%} {row['most_ticks']:7.2f}× {row['hit_rate']:9.1%} "
            f"{row['fidelity']:9.1%} {row['memory_mb']:6.0f} MB"
        )


def measure(method: str, queries: QuerySet, ticks: int, measured: int, draw: np.random.Generator) -> dict[str, float]:
    """Medians over ticks; naive and deferred ticks alternate, so that both see the same machine."""
    evaluator = StandingEvaluator(queries, EvaluatorOptions(method=method))
    twin = StandingEvaluator(queries, EvaluatorOptions(method=method))
    streams = np.arange(queries.streams)
    values = np.full(queries.streams, 1000.0)
    answers, held, within = np.zeros(queries.queries), np.zeros(queries.queries), 0
    times: dict[str, list[float]] = {"all due": [], "system": [], "deferred": [], "naive": []}
    due, hits, judged = 0, 0.0, 0
    for tick in range(ticks + measured):
        values = values + draw.standard_normal(queries.streams)
        now = np.full(queries.streams, float(tick))
        if tick == ticks:
            twin.resume(evaluator.snapshot())
        begun = time.process_time()
        found = evaluator.tick(float(tick), streams, now, values)
        spent = time.process_time() - begun
        held[found.query] = found.value
        if tick < ticks:
            continue
        times["deferred"].append(spent)
        due += len(found)
        hits, judged = hits + float(np.nansum(found.kept)), judged + int(np.count_nonzero(~np.isnan(found.kept)))
        twin.next_at[:] = -np.inf
        system = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        begun = time.process_time()
        twin.tick(float(tick), streams, now, values)
        times["all due"].append(time.process_time() - begun)
        times["system"].append(resource.getrusage(resource.RUSAGE_SELF).ru_stime - system)
        begun = time.process_time()
        current = queries.weights @ values
        left = np.flatnonzero(np.abs(current - answers) > queries.bound)
        answers[left] = current[left]
        times["naive"].append(time.process_time() - begun)
        within += int(np.count_nonzero(np.abs(current - held) <= queries.bound))
    middle = {name: float(np.median(spent)) * 1e3 for name, spent in times.items()}
    return {
        "all_due_ms": middle["all due"],
        "all_due_system_ms": middle["system"],
        "deferred_ms": middle["deferred"],
        "bare_product_ms": middle["naive"],
        "cheaper_than_all_due": middle["all due"] / middle["deferred"],
        "cheaper_than_bare_product": middle["naive"] / middle["deferred"],
        "due_ratio": due / (measured * queries.queries),
        "hit_rate": hits / judged,
        "fidelity": within / (measured * queries.queries),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
