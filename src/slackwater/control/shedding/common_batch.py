"""Several promised streams in the micro-batches of one query: one decision for all of them.

The duration of a micro-batch is common to its streams, and so are their delays. If each stream were controlled for
itself, what the others cost would be a fixed cost to it, and a stream whose target the others exceed would shed all its
rows in vain. So one controller sees all rows, aims at the shortest target, and all streams are shed alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slackwater.control.shedding.microbatch import MicroBatch, ShedDecision


def together(parts: Sequence[MicroBatch]) -> MicroBatch:
    """One micro-batch with the rows of all its streams.

    >>> together([MicroBatch(0.0, 2.0, 300, 100, mean_arrival_s=1.0), MicroBatch(0.0, 2.0, 100, 50, 4.0)])
    ... # doctest: +NORMALIZE_WHITESPACE
    MicroBatch(started_s=0.0, duration_s=2.0, rows=400, kept=150, mean_arrival_s=2.0, waiting_rows=None,
               newest_arrival_s=None)
    """
    if len(parts) == 1:
        return parts[0]
    kept = [part for part in parts if part.kept]
    arrivals = [(part.mean_arrival_s, part.kept) for part in kept if part.mean_arrival_s is not None]
    known = bool(kept) and len(arrivals) == len(kept)
    lags = [part.waiting_rows for part in parts if part.waiting_rows is not None]
    return MicroBatch(
        parts[0].started_s,
        parts[0].duration_s,
        sum(part.rows for part in parts),
        sum(part.kept for part in parts),
        sum(at * rows for at, rows in arrivals) / sum(rows for _, rows in arrivals) if known else None,
        sum(lags) if lags else None,
    )


def decision_for(part: MicroBatch, whole: MicroBatch, decision: ShedDecision, strictest: bool) -> ShedDecision:
    """The common decision as one stream reports it: its own delay, and its share of load, capacity and backlog.

    ``strictest`` is whether its target is the shortest; only then a warning about that target is its own.
    """
    if not part.rows:
        return ShedDecision(decision.shed_ratio, warning=decision.warning if strictest else None)
    delay_s = decision.delay_s if part.kept else None
    if part.kept and delay_s is not None and part.mean_arrival_s is not None:
        delay_s = part.started_s + part.duration_s - part.mean_arrival_s
    share = part.rows / whole.rows
    return replace(
        decision,
        delay_s=delay_s,
        load_per_s=_part(decision.load_per_s, share),
        capacity_per_s=_part(decision.capacity_per_s, share),
        backlog_rows=_part(decision.backlog_rows, share),
        warning=decision.warning if strictest else None,
    )


def _part(number: float | None, share: float) -> float | None:
    return None if number is None else number * share
