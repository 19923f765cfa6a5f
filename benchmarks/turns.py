"""Queries that take turns, micro-batch by micro-batch, so that a machine's moods are those of all of them.

All queries run at once, each with a clock of its own for its trigger, and it is moved on for one of them at a time: a
turn is a few micro-batches back to back, from the trigger of the first until the last is committed and reported. A
machine that gets faster and slower by half within minutes does so for neighbours alike, so queries are compared inside
a round of turns, and the median of the rounds counts. Each round begins with another query. Nothing is written
(``noop``). The clock is Spark's own, for its tests, and out of reach of the public API.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from processor_time import processor_time_s

_LOOK_S = 0.005
_INTERVAL_MS = 1000


class Stepped:
    """A query that takes a micro-batch when it is told to."""

    def __init__(self, df: DataFrame, checkpoint: Path) -> None:
        jvm = df.sparkSession._jvm
        none, somewhere = jvm.scala.Option.empty(), jvm.scala.Option.apply(str(checkpoint))
        nowhere = _object(jvm.org.apache.spark.sql.execution.datasources.noop, "NoopTable")
        no_options = _object(jvm.scala.collection.immutable, "Map").empty()
        trigger = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(_INTERVAL_MS)
        append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
        self._clock = jvm.org.apache.spark.util.ManualClock(int(time.time() * 1000))
        manager = df.sparkSession._jsparkSession.sessionState().streamingQueryManager()
        started = manager.startQuery(
            none, none, somewhere, df._jdf, no_options, nowhere, append, False, True, trigger, self._clock, none, none
        )
        self.query = StreamingQuery(started)
        self._wait(0)

    def take_turn(self, batches: int) -> None:
        """So many micro-batches, back to back."""
        for batch in range(self._done() + 1, self._done() + 1 + batches):
            self._clock.advance(_INTERVAL_MS)
            self._wait(batch)

    def _wait(self, batch: int) -> None:
        while self._done() < batch:
            if not self.query.isActive:
                raise RuntimeError(str(self.query.exception()))
            time.sleep(_LOOK_S)

    def _done(self) -> int:
        """The last micro-batch that was reported."""
        progress = self.query._jsq.lastProgress()
        return -1 if progress is None else int(progress.batchId())


def _object(package: Any, name: str) -> Any:
    """An object of Scala's."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


@dataclass(frozen=True)
class Cost:
    """Seconds of the clock and of the processors, or multiples of another cost. The second is less noisy."""

    clock: float
    processor: float

    def over(self, other: Cost) -> Cost:
        """In multiples of the other."""
        return Cost(self.clock / other.clock, self.processor / other.processor)

    @classmethod
    def median(cls, costs: list[Cost]) -> Cost:
        """Of several rounds."""
        return cls(statistics.median(c.clock for c in costs), statistics.median(c.processor for c in costs))


Round = dict[str, Cost]
"""What a micro-batch of each query cost."""


def take_turns(
    queries: dict[str, Stepped], pid: int, batches: int, warm_up: int, rounds: int, told: Callable[[int, Round], None]
) -> list[Round]:
    """The rounds after the warm-up; each one is ``told`` of, those of the warm-up with numbers below 1."""
    names, found = list(queries), []
    for number in range(1 - warm_up, rounds + 1):
        first = number % len(names)
        costs: Round = {}
        for name in names[first:] + names[:first]:
            clock_s, used_s = time.monotonic(), processor_time_s(pid)
            queries[name].take_turn(batches)
            took_s, worked_s = time.monotonic() - clock_s, processor_time_s(pid) - used_s
            costs[name] = Cost(took_s / batches, worked_s / batches)
        told(number, costs)
        if number > 0:
            found.append(costs)
    return found
