"""``report``: how a running query keeps its promises."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.control.ledger import Ledger
from slackwater.errors import UnknownName
from slackwater.extras import installed
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.runtime.handler import PromiseReport
from slackwater.spark.runtime.listener import reports_of, wait_for_batch
from slackwater.spark.standing.report import PrecisionReport
from slackwater.spark.timeliness.report import TimelinessReport
from slackwater.watching.verdict import NOTHING_PUBLISHED


@dataclass(frozen=True, slots=True)
class Report:
    """All promises of one query, by kind."""

    query_id: str
    completeness: tuple[CompletenessReport, ...] = ()
    timeliness: tuple[TimelinessReport, ...] = ()
    precision: tuple[PrecisionReport, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether every promise is kept so far. A query that has published nothing keeps none."""
        return bool(self._promises) and all(promise.kept for promise in self._promises)

    @property
    def verdict(self) -> str:
        """``kept``, ``broken`` or ``nothing published yet``, over all promises."""
        if any(promise.verdict == "broken" for promise in self._promises):
            return "broken"
        return "kept" if self.kept else NOTHING_PUBLISHED

    @property
    def _promises(self) -> list[PromiseReport]:
        return [*self.completeness, *self.timeliness, *self.precision]

    @property
    def ledger(self) -> Ledger:
        """What became of every row that the query read; shed rows are judged by no other promise.

        A standing query without DRATIO counts its rows itself: a row out of order is late.
        """
        counted: Sequence[PromiseReport] = self.completeness or self.timeliness or self.precision
        total = sum((promise.ledger for promise in counted), Ledger())
        if not self.completeness:
            return total
        shedding = [promise.ledger for promise in self.timeliness]
        # A micro-batch that is not exact in both is one micro-batch.
        both = [total, *shedding]
        return replace(
            total,
            shed=total.shed + sum(ledger.shed for ledger in shedding),
            unreported_batches=max(ledger.unreported_batches for ledger in both),
            misread_batches=max(ledger.misread_batches for ledger in both),
        )

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "query_id": self.query_id,
            "kept": self.kept,
            "verdict": self.verdict,
            "ledger": self.ledger.as_json(),
            "completeness": [promise.as_json() for promise in self.completeness],
            "timeliness": [promise.as_json() for promise in self.timeliness],
            "precision": [promise.as_json() for promise in self.precision],
        }

    def __str__(self) -> str:
        return "\n".join(str(promise) for promise in self._promises) or f"{NOTHING_PUBLISHED}: no micro-batch had rows"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report for a notebook: with small plots, or without matplotlib as plain text."""
        if not installed("matplotlib"):
            return f"<pre>{html.escape(str(self))}</pre>"
        from slackwater.watching.report_html import report_html

        return report_html([promise.series for promise in self._promises if promise.series is not None])


def report(query: StreamingQuery) -> Report:
    """How the query keeps its promises, counting every micro-batch that it has committed, in earlier runs too.

    It waits up to ten seconds for the listener to deal with the last micro-batch.
    """
    committed = _last_committed(query)
    if committed is not None:
        wait_for_batch(str(query.id), committed)
    found = reports_of(str(query.id))
    if committed is not None and not found:
        raise UnknownName(
            "no-promise",
            f"query {query.id} makes no promise",
            "put with_drop_ratio, with_max_delay or standing into its plan before it starts",
        )
    return Report(
        str(query.id),
        tuple(cast(list[CompletenessReport], found.get("completeness", []))),
        tuple(cast(list[TimelinessReport], found.get("timeliness", []))),
        tuple(cast(list[PrecisionReport], found.get("precision", []))),
    )


def _last_committed(query: StreamingQuery) -> int | None:
    """The last micro-batch that the query has committed in this run.

    An idle query reports progress too, under the number of a micro-batch that does not exist.
    """
    last = query.lastProgress
    if last is None:
        return None
    # Reading a hundred reports takes a second, so that is left to idle queries.
    progress = [last] if "addBatch" in last["durationMs"] else query.recentProgress
    return max((int(each["batchId"]) for each in progress if "addBatch" in each["durationMs"]), default=None)
