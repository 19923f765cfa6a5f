"""Rows per second of processor time of the window operator alone: MAX and AVG, batches of a million rows.

The median of five runs: the first one also pays for the memory that a new process has to be given.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from slackwater.kernel.windows import Rows, WindowOperator, WindowSpec

ROWS_PER_S = 10_000
BATCH = 1_000_000
RUNS = 5


def rows_per_s(window: WindowSpec, keys: int, batches: int) -> float:
    """Push batches of rows that are up to five seconds late; the heartbeat follows six seconds behind."""
    rng = np.random.default_rng(1)
    operator = WindowOperator(window, columns=1)
    made = []
    for number in range(batches):
        arrival = (number * BATCH + np.arange(BATCH)) * (1_000_000 // ROWS_PER_S)
        at = np.maximum(arrival - (rng.gamma(2.0, 0.5, BATCH) * 1e6).astype(np.int64).clip(0, 5_000_000), 0)
        made.append(
            (Rows.of(at, rng.integers(0, keys, BATCH), (rng.normal(size=BATCH),)), int(arrival[-1]) - 6_000_000)
        )
    start = time.process_time()
    results = sum(len(operator.push(rows, heartbeat)[0]) for rows, heartbeat in made)
    seconds = time.process_time() - start
    assert operator.late == 0 and results > 0
    return batches * BATCH / seconds


def main() -> None:
    """Print a line a window."""
    both = (("max", 0), ("avg", 0))
    for name, spec, keys in (
        ("(t − 30 s, t], one group", WindowSpec(30_000_000, aggregates=both), 1),
        ("(t − 30 s, t], 100 groups", WindowSpec(30_000_000, aggregates=both), 100),
        ("60 s every 1 s, 100 groups", WindowSpec(60_000_000, 1_000_000, aggregates=both), 100),
        ("the last 100 tuples", WindowSpec(100, tuples=True, aggregates=both), 1),
    ):
        runs = [rows_per_s(spec, keys, 4) / 1e6 for _ in range(RUNS)]
        print(f"{name:<28} {statistics.median(runs):6.2f} million rows/s ({min(runs):.2f} to {max(runs):.2f})")


if __name__ == "__main__":
    main()
