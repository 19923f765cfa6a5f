"""Measures queries in turns, so that changes in the speed of the machine affect all of them alike.

All queries run at the same time, each with its own trigger clock. Only one clock advances at a time. A turn is a few
micro-batches of one query, back to back; a round is one turn per query. Queries are compared within a round, and the
median of the rounds counts. Each round begins with another query. Results go to the ``noop`` sink.

The clock is the ``ManualClock`` of Spark's own tests. The public API does not reach it, so this module uses py4j.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from processor_time import processor_time_s

_POLL_S = 0.02
_INTERVAL_MS = 1000


class SteppedQuery:
    """A query that runs a micro-batch only on request."""

    def __init__(self, df: DataFrame, checkpoint: Path) -> None:
        jvm: Any = df.sparkSession._jvm
        none, location = jvm.scala.Option.empty(), jvm.scala.Option.apply(str(checkpoint))
        noop = _scala_object(jvm.org.apache.spark.sql.execution.datasources.noop, "NoopTable")
        no_options = _scala_object(jvm.scala.collection.immutable, "Map").empty()
        trigger = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(_INTERVAL_MS)
        append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
        self._clock = jvm.org.apache.spark.util.ManualClock(int(time.time() * 1000))
        manager = df.sparkSession._jsparkSession.sessionState().streamingQueryManager()
        started = manager.startQuery(
            none, none, location, df._jdf, no_options, noop, append, False, True, trigger, self._clock, none, none
        )
        self.query = StreamingQuery(started)
        self._wait(0)

    def take_turn(self, batches: int) -> None:
        """Run this many micro-batches, back to back."""
        last = self._last_batch()
        for batch in range(last + 1, last + 1 + batches):
            self._clock.advance(_INTERVAL_MS)
            self._wait(batch)

    def _wait(self, batch: int) -> None:
        while self._last_batch() < batch:
            if not self.query.isActive:
                raise RuntimeError(str(self.query.exception()))
            time.sleep(_POLL_S)

    def _last_batch(self) -> int:
        """The last micro-batch that Spark has reported."""
        progress = self.query._jsq.lastProgress()
        return -1 if progress is None else int(progress.batchId())


def _scala_object(package: Any, name: str) -> Any:
    """The Scala ``object`` of that name."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


@dataclass(frozen=True)
class Cost:
    """Wall-clock and processor time, in seconds or as multiples of another cost. Processor time is less noisy."""

    clock: float
    processor: float

    def over(self, other: Cost) -> Cost:
        """This cost as multiples of ``other``."""
        return Cost(self.clock / other.clock, self.processor / other.processor)

    @classmethod
    def median(cls, costs: list[Cost]) -> Cost:
        """The median of several costs, clock and processor apart."""
        return cls(statistics.median(c.clock for c in costs), statistics.median(c.processor for c in costs))


Round = dict[str, Cost]
"""The cost per micro-batch of each query."""


def take_turns(
    queries: dict[str, SteppedQuery],
    pid: int,
    batches: int,
    warm_up: int,
    rounds: int,
    on_round: Callable[[int, Round], None],
) -> list[Round]:
    """Run ``warm_up + rounds`` rounds with turns of ``batches`` micro-batches; return the rounds after the warm-up.

    ``pid`` is the process whose processor time is measured, with its children. ``on_round`` is called after every
    round; warm-up rounds have numbers below 1.
    """
    names, found = list(queries), []
    for number in range(1 - warm_up, rounds + 1):
        first = number % len(names)
        costs: Round = {}
        for name in names[first:] + names[:first]:
            clock_s, processor_s = time.monotonic(), processor_time_s(pid)
            queries[name].take_turn(batches)
            clock_s, processor_s = time.monotonic() - clock_s, processor_time_s(pid) - processor_s
            costs[name] = Cost(clock_s / batches, processor_s / batches)
        on_round(number, costs)
        if number > 0:
            found.append(costs)
    return found
