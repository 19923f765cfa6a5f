"""Many queries over one stream of micro-batches, run at the same time and settled after each micro-batch.

A query costs seconds to start and to step, most of them spent waiting. A test module that runs its queries side by
side takes a fraction of the time that one query after the other takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.report import Report, report
from tests.helpers.harness import FileStream, collected, settle, start_idle


@dataclass(frozen=True)
class Case:
    """A query text, the options of ``sw.sql``, and where the query is restarted.

    ``restart_after`` is the number of the micro-batch after which the query is stopped and started again.
    """

    text: str
    options: Mapping[str, Any] = field(default_factory=dict)
    restart_after: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a query published, what it reported in the end, and the stream it read."""

    source: FileStream
    published: DataFrame
    report: Report

    @property
    def promise(self) -> CompletenessReport:
        (promise,) = self.report.completeness
        return promise


def run_side_by_side(
    source: FileStream,
    folder: Path,
    batches: Sequence[list[dict[str, Any]]],
    cases: Mapping[str, Case],
    stream: str = "Sensors",
) -> dict[str, Outcome]:
    """Stream the batches through all queries; in each, the decisions of one batch are in force in the next.

    ``stream`` is the name by which the texts know the source.
    """

    def begin(name: str) -> StreamingQuery:
        sw.stream(stream, source.read_stream(), event_time="ts")
        result = sw.sql(
            source.spark,
            cases[name].text,
            name=f"{folder.name}-{name}",
            location=str(folder / name / "promise"),
            **cases[name].options,
        )
        return start_idle(result, folder / name)

    running = {name: begin(name) for name in cases}
    try:
        for number, batch in enumerate(batches):
            source.put(batch)
            for query in running.values():
                settle(query)
            for name, case in cases.items():
                if case.restart_after == number:
                    running[name].stop()
                    running[name] = begin(name)
        reports = {name: report(query) for name, query in running.items()}
    finally:
        for query in running.values():
            query.stop()
    return {name: Outcome(source, collected(source.spark, folder / name), final) for name, final in reports.items()}
