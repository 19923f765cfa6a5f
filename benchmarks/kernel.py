"""Rows per second of processor time of the window operator alone: MAX and AVG, batches of a million rows.

Prints the median, minimum and maximum of five runs. The first run also pays for memory that the process does not
have yet.
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
    """Rows are up to five seconds late; the heartbeat is six seconds behind, and the operator gets what it passed."""
    rng = np.random.default_rng(1)
    operator = WindowOperator(window, columns=1)
    made, waiting = [], Rows.empty(1)
    for number in range(batches):
        arrival = (number * BATCH + np.arange(BATCH)) * (1_000_000 // ROWS_PER_S)
        at = np.maximum(arrival - (rng.gamma(2.0, 0.5, BATCH) * 1e6).astype(np.int64).clip(0, 5_000_000), 0)
        arrived = Rows.of(at, rng.integers(0, keys, BATCH), (rng.normal(size=BATCH),))
        rows, heartbeat = Rows.concat([waiting, arrived], 1), int(arrival[-1]) - 6_000_000
        passed = rows.attribute < heartbeat
        made.append((rows.take(passed), heartbeat))
        waiting = rows.take(~passed)
    start = time.process_time()
    results = sum(len(operator.advance(rows, heartbeat)) for rows, heartbeat in made)
    seconds = time.process_time() - start
    assert results > 0
    return sum(len(rows) for rows, _ in made) / seconds


def main() -> None:
    """Print one line per window."""
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
