"""A million portfolios: their values stay within a bound, and most are not looked at in most ticks. Without Spark.

python examples/a_million_portfolios.py            # a million, half a minute
python examples/a_million_portfolios.py --short    # ten thousand
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import sparse

from slackwater.kernel.evaluator import StandingEvaluator
from slackwater.kernel.options import EvaluatorOptions
from slackwater.kernel.queries import QuerySet

SHARES, HELD = 1_000, 9


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--short", action="store_true")
    portfolios, ticks = (10_000, 150) if options.parse_args().short else (1_000_000, 200)
    draw = np.random.default_rng(3)
    held = sparse.csr_matrix(
        (
            draw.uniform(1.0, 10.0, portfolios * HELD),
            draw.integers(0, SHARES, portfolios * HELD),
            np.arange(0, portfolios * HELD + 1, HELD),
        ),
        shape=(portfolios, SHARES),
    )
    moves = np.sqrt(np.asarray(held.power(2).sum(axis=1)).ravel())  # what a portfolio moves in a tick, as a rule
    queries = QuerySet.of(np.arange(portfolios), held, 5.0 * moves, 0.9)
    evaluator = StandingEvaluator(queries, EvaluatorOptions())

    prices, answers = np.full(SHARES, 1_000.0), np.full(portfolios, np.nan)
    looked_at, within, judged, spent_s = 0, 0, 0, 0.0
    for tick in range(ticks):
        prices = prices + draw.standard_normal(SHARES)
        began = time.perf_counter()
        found = evaluator.tick(float(tick), np.arange(SHARES), np.full(SHARES, float(tick)), prices)
        spent_s += time.perf_counter() - began
        answers[found.query] = found.value
        if tick >= ticks // 2:  # it has learned how the prices move
            looked_at += len(found.query)
            within += int(np.count_nonzero(np.abs(held @ prices - answers) <= queries.bound))
            judged += portfolios
    print(f"{portfolios:,} portfolios, {ticks} ticks, {1e3 * spent_s / ticks:,.1f} ms a tick")
    print(f"looked at {looked_at / judged:.1%} of them in a tick")
    print(f"within the bound {within / judged:.1%} of the time; promised 90%")


if __name__ == "__main__":
    main()
