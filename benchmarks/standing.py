"""A million standing aggregates on one core: a deferred tick, a tick with all queries due, and a bare sparse product.

All figures come from one run, in processor time of one thread, on the same values:

- deferred: a tick of the evaluator;
- all due: a tick of a second evaluator in which every query is due, on the same rows. "system" is the part of it that
  the operating system took, mostly to clear memory;
- bare product: one sparse product that only finds the answers outside their bounds. Evaluating everything costs at
  least that much;
- Eq. (7): the deferral in ticks at that bound under Brownian motion. A method whose hit rate is the confidence cannot
  save more. A method that holds the share of time at the confidence can.
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

CASES = (
    "calibrated@0.95,calibrated@0.9,calibrated@0.85,calibrated@0.8,"
    "economical@0.95,economical@0.9,economical@0.85"
)  # fmt: skip


def portfolios(queries: int, streams: int, of: int, seed: int) -> sparse.csr_matrix:
    """Weights of random portfolios of ``of`` streams each."""
    draw = np.random.default_rng(seed)
    steps = np.cumsum(draw.integers(1, streams // of, (queries, of)), axis=1)
    members = np.sort((draw.integers(0, streams, (queries, 1)) + steps) % streams, axis=1)
    weights = draw.uniform(0.5, 1.5, queries * of)
    return sparse.csr_matrix(
        (weights, members.astype(np.int32).ravel(), np.arange(0, queries * of + 1, of, dtype=np.int32)),
        shape=(queries, streams),
    )


def main() -> None:
    """Measure every case and print the table."""
    options = arguments()
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
    for case, row in result.items():
        print(
            f"{case:16} {row['deferred_ms']:8.1f}ms {row['all_due_ms']:8.0f}ms ({row['cheaper_than_all_due']:4.1f}×) "
            f"{row['all_due_system_ms']:6.0f}ms "
            f"{row['bare_product_ms']:8.1f}ms ({row['cheaper_than_bare_product']:4.1f}×) "
            f"{row['due_ratio']:7.1%} {row['most_ticks']:7.2f}× {row['hit_rate']:9.1%} "
            f"{row['fidelity']:9.1%} {row['memory_mb']:6.0f} MB"
        )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--of", type=int, default=9, help="streams per query")
    parser.add_argument("--sigmas", type=float, default=5.0, help="the bound, in σ of the aggregate's own tick")
    parser.add_argument("--ticks", type=int, default=1200, help="warm-up ticks, until the loops have settled")
    parser.add_argument("--measured", type=int, default=40, help="measured ticks")
    parser.add_argument("--cases", default=CASES, help="method@confidence, separated by commas")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(method: str, queries: QuerySet, ticks: int, measured: int, draw: np.random.Generator) -> dict[str, float]:
    """Medians over the measured ticks. The three kinds of tick alternate, so that all see the same machine."""
    evaluator = StandingEvaluator(queries, EvaluatorOptions(method=method))
    all_due = StandingEvaluator(queries, EvaluatorOptions(method=method))
    streams = np.arange(queries.streams)
    values = np.full(queries.streams, 1000.0)
    product_answers, answers, within = np.zeros(queries.queries), np.zeros(queries.queries), 0
    times: dict[str, list[float]] = {"all due": [], "system": [], "deferred": [], "product": []}
    due, hits, judged = 0, 0.0, 0
    for tick in range(ticks + measured):
        values = values + draw.standard_normal(queries.streams)
        now = np.full(queries.streams, float(tick))
        if tick == ticks:
            all_due.resume(evaluator.snapshot())
        begun = time.process_time()
        found = evaluator.tick(float(tick), streams, now, values)
        spent = time.process_time() - begun
        answers[found.query] = found.value
        if tick < ticks:
            continue
        times["deferred"].append(spent)
        due += len(found)
        hits, judged = hits + float(np.nansum(found.kept)), judged + int(np.count_nonzero(~np.isnan(found.kept)))
        all_due.next_at[:] = -np.inf
        system = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        begun = time.process_time()
        all_due.tick(float(tick), streams, now, values)
        times["all due"].append(time.process_time() - begun)
        times["system"].append(resource.getrusage(resource.RUSAGE_SELF).ru_stime - system)
        begun = time.process_time()
        current = queries.weights @ values
        outside = np.flatnonzero(np.abs(current - product_answers) > queries.bound)
        product_answers[outside] = current[outside]
        times["product"].append(time.process_time() - begun)
        within += int(np.count_nonzero(np.abs(current - answers) <= queries.bound))
    median_ms = {name: float(np.median(spent)) * 1e3 for name, spent in times.items()}
    return {
        "all_due_ms": median_ms["all due"],
        "all_due_system_ms": median_ms["system"],
        "deferred_ms": median_ms["deferred"],
        "bare_product_ms": median_ms["product"],
        "cheaper_than_all_due": median_ms["all due"] / median_ms["deferred"],
        "cheaper_than_bare_product": median_ms["product"] / median_ms["deferred"],
        "due_ratio": due / (measured * queries.queries),
        "hit_rate": hits / judged,
        "fidelity": within / (measured * queries.queries),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
