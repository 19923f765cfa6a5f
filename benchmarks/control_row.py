"""Cost per micro-batch of the control row: asked from the driver, or read from a file on the local disk.

Four promised queries and two plain ones over the same rows take turns in one session (``turns.py``). A promised turn
and the plain turn of the same round are a pair; so are the two promised turns that differ only in where the control row
is. Printed is the median over the pairs of the difference, in milliseconds per micro-batch.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from overhead import SCHEMA, SESSION, MeasuredQuery, make_rows
from slackwater.spark.command.session import local_session
from turns import Cost, Round, SteppedQuery, take_turns

PLAIN = "withWatermark"
PROMISES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "with_drop_ratio": lambda events: sw.with_drop_ratio(events, "ts", 0.01),
    "with_max_delay": lambda events: sw.with_max_delay(events, "1 hour", weight=None).withWatermark("ts", "10 seconds"),
}
PLACES = ("driver", "file")


def queries_over(spark: SparkSession, rows: str, folder: Path) -> dict[str, SteppedQuery]:
    """The plain query, and each promise with its control row in either place."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    plain = reader.json(rows).withWatermark("ts", "10 seconds")
    found: dict[str, SteppedQuery] = {PLAIN: MeasuredQuery(plain, folder / "plain", promised=False)}
    for promise, apply in PROMISES.items():
        for place in PLACES:
            spark.conf.set("spark.slackwater.controlRow", place)
            found[f"{promise}, {place}"] = MeasuredQuery(apply(reader.json(rows)), folder / promise / place, True)
    return found


def differences_ms(rounds: list[Round], name: str, other: str) -> str:
    """Median and range, over the rounds, of the time that one query takes longer than another."""
    texts = []
    for what in ("clock", "processor"):
        costs: list[tuple[Cost, Cost]] = [(costs[name], costs[other]) for costs in rounds]
        found = sorted(1e3 * (getattr(one, what) - getattr(two, what)) for one, two in costs)
        texts.append(f"{what} {statistics.median(found):+.0f} ms ({found[0]:+.0f} … {found[-1]:+.0f})")
    return ", ".join(texts)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=2000, help="rows per micro-batch")
    arguments.add_argument("--batches", type=int, default=5, help="micro-batches per turn")
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--warm-up", type=int, default=4)
    options = arguments.parse_args()
    files = 1 + options.batches * (options.warm_up + options.rounds)
    with local_session("control-row", **SESSION) as spark, tempfile.TemporaryDirectory() as temporary:
        rows = str(Path(temporary) / "rows")
        make_rows(spark, files * options.rows, files).write.json(rows)
        queries = queries_over(spark, rows, Path(temporary))
        rounds = take_turns(queries, os.getpid(), options.batches, options.warm_up, options.rounds, _show)
        for query in queries.values():
            query.query.stop()
    plain = Cost.median([costs[PLAIN] for costs in rounds])
    print(f"\n{PLAIN}: clock {1e3 * plain.clock:.0f} ms, processor {1e3 * plain.processor:.0f} ms per micro-batch")
    for promise in PROMISES:
        for place in PLACES:
            print(f"{promise}, {place}, over {PLAIN}: {differences_ms(rounds, f'{promise}, {place}', PLAIN)}")
        print(f"{promise}, file over driver: {differences_ms(rounds, f'{promise}, file', f'{promise}, driver')}")


def _show(number: int, costs: Round) -> None:
    print(f"round {number}: {', '.join(f'{name} {1e3 * cost.clock:.0f}' for name, cost in costs.items())}", flush=True)


if __name__ == "__main__":
    main()
