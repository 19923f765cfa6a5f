"""What a row costs by how much windows overlap: queries that take turns, micro-batch by micro-batch, in one run.

All queries run at once, and all but one of them wait: a turn is what one query does from the beginning of the work on a
micro-batch to the beginning of that on its next one, so committing, deciding and planning are in it. A machine that
gets faster and slower by half within minutes does so for neighbours alike: costs are compared inside a round of turns,
and the median of the rounds counts. Each round begins with another query. Rows, windows and session are those of
``windows.py``; the results, which are few, are written nowhere.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from processor_time import processor_time_s
from slackwater.spark.report import report
from windows import Rate, Source, ours, session

_LOOK_S = 0.05


class Turns:
    """A query that works on a micro-batch when it is told to, and says when it would work on the next."""

    def __init__(self, df: DataFrame, checkpoint: Path) -> None:
        self._go, self._ready = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        writer = df.writeStream.foreachBatch(self._work).option("checkpointLocation", str(checkpoint))
        self.query: StreamingQuery = writer.start()
        self._wait()

    def take(self) -> None:
        """One micro-batch."""
        self._go.release()
        self._wait()

    def stop(self) -> None:
        """No more turns."""
        self._over = True
        self._go.release()
        self.query.stop()

    def _work(self, results: DataFrame, _: int) -> None:
        self._ready.release()
        self._go.acquire()
        if not self._over:
            results.write.format("noop").mode("overwrite").save()

    def _wait(self) -> None:
        while not self._ready.acquire(timeout=_LOOK_S):
            if not self.query.isActive:
                raise RuntimeError(str(self.query.exception()))


def main() -> None:
    """Print costs, round by round and their medians; ``--json`` for machines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16_000_000, help="rows a micro-batch")
    parser.add_argument("--keys", type=int, default=100, help="sensors")
    parser.add_argument("--overlaps", type=int, nargs="+", default=[1, 6, 60, 600])
    parser.add_argument("--warm-up", type=int, default=10, help="rounds that do not count")
    parser.add_argument("--rounds", type=int, default=20, help="rounds that count")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        rounds = take_turns(options, Path(folder))
    costs = {str(overlap): Rate.median([of[overlap] for of in rounds]) for overlap in options.overlaps}
    if options.json:
        print(json.dumps({overlap: vars(cost) for overlap, cost in costs.items()}))
        return
    print(f"median of {len(rounds)} rounds, {options.rows:,} rows a micro-batch of {options.keys:,} sensors")
    for words, by in (("the clock", "wall"), ("processor time", "processor")):
        found = {overlap: getattr(cost, by) for overlap, cost in costs.items()}
        told = ", ".join(f"{overlap}: {cost:.2f}" for overlap, cost in found.items())
        apart = max(found.values()) / min(found.values()) - 1
        print(f"a row's cost by overlap, by {words}: {told}; dearest over cheapest {apart:.0%}")


def take_turns(options: argparse.Namespace, folder: Path) -> list[dict[int, Rate]]:
    """Of each round what every overlap cost, in multiples of what the first one did."""
    spark = session()
    source = Source(spark, "rate", folder, 0, options.keys)
    pid = spark.sparkContext._gateway.proc.pid
    queries = {n: Turns(ours(spark, source.events(options.rows), n, 1), folder / str(n)) for n in options.overlaps}
    rounds = []
    for number in range(options.warm_up + options.rounds):
        taken: dict[int, tuple[float, float]] = {}
        for overlap in _rotated(options.overlaps, number):
            clock_s, used_s = time.monotonic(), processor_time_s(pid)
            queries[overlap].take()
            taken[overlap] = time.monotonic() - clock_s, processor_time_s(pid) - used_s
        base_s, base_used_s = taken[options.overlaps[0]]
        costs = {n: Rate(taken[n][0] / base_s, taken[n][1] / base_used_s) for n in options.overlaps}
        counted = number >= options.warm_up
        if counted:
            rounds.append(costs)
        if not options.json:
            seconds = ", ".join(f"{n}: {taken[n][0]:.2f} s ({taken[n][1]:.2f} s)" for n in options.overlaps)
            print(f"{'round' if counted else 'warm-up'} {number + 1}, clock (processor time): {seconds}", flush=True)
    for turns in queries.values():
        assert not report(turns.query).ledger.late, "rows that are left out cost less"
        turns.stop()
    spark.stop()
    return rounds


def _rotated(items: list[Any], by: int) -> list[Any]:
    start = by % len(items)
    return items[start:] + items[:start]


if __name__ == "__main__":
    main()
