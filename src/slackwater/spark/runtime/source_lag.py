"""How far the sources of a promise are behind, as Spark's progress says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress

_OWN_OFFSETS = ({"epoch"}, {"clock_ms"})
"""Keys in the offsets of the heartbeat and the clock, which are no sources of the user."""
_AVERAGE_LAG = "avgOffsetsBehindLatest"


@dataclass(frozen=True, slots=True)
class SourceLag:
    """The source of a promise: its description, and the rows that it holds back; None if it does not say."""

    description: str
    waiting_rows: float | None


def source_lag(progress: StreamingQueryProgress, rows: int) -> SourceLag | None:
    """The source that delivered the ``rows`` of a promise in this micro-batch; None if that is ambiguous.

    In a query with several sources it is the one with as many input rows as the promise has counted.
    """
    sources = user_sources(progress.sources)
    if len(sources) > 1:
        sources = [source for source in sources if source.numInputRows == rows]
    if len(sources) != 1:
        return None
    (source,) = sources
    return SourceLag(source.description, _waiting_rows(source, rows))


def waiting_rows(sources: Sequence[SourceProgress], rows: int) -> float | None:
    """The rows of a promise that its sources hold and that are not read yet; None if none of them says so.

    :param sources: the sources of the promise, and perhaps some of our own.
    :param rows: how many of their rows the promise has counted in this micro-batch.
    """
    sources = user_sources(sources)
    lags = [lag for source in sources if (lag := _waiting_rows(source, source.numInputRows)) is not None]
    if not lags:
        return None
    # A plan may read a source twice, or leave rows out below the promise.
    delivered = sum(source.numInputRows for source in sources)
    return sum(lags) * (rows / delivered if delivered else 1.0)


def user_sources(sources: Sequence[SourceProgress]) -> list[SourceProgress]:
    """The sources without our own, which are those of heartbeats and of the clock."""
    return [source for source in sources if not _is_own(source)]


def _waiting_rows(source: SourceProgress, rows: int) -> float | None:
    """The source's lag in rows, from its latest offset or, as Kafka reports it too, from its metrics.

    Offsets count rows, but not exactly (filters, transactions, compaction). The rows per offset of this micro-batch
    convert them.
    """
    start, end, latest = (_numbers(text) for text in (source.startOffset, source.endOffset, source.latestOffset))
    if end is None:
        return None
    if latest is not None and latest.keys() >= end.keys():
        lag = sum(max(latest[name] - offset, 0.0) for name, offset in end.items())
    elif _AVERAGE_LAG in source.metrics:
        lag = float(source.metrics[_AVERAGE_LAG]) * len(end)
    else:
        return None
    read = 0.0 if start is None else sum(offset - start.get(name, offset) for name, offset in end.items())
    return lag * (rows / read if rows and read > 0 else 1.0)


def _is_own(source: SourceProgress) -> bool:
    offset = _json(source.endOffset)
    return isinstance(offset, dict) and any(keys <= offset.keys() for keys in _OWN_OFFSETS)


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except json.JSONDecodeError:
        return None


def _numbers(text: str | None) -> dict[str, float] | None:
    """The numbers of an offset, by their place in it; None unless the offset is a JSON object of numbers only.

    >>> _numbers('{"topic": {"0": 12, "1": 7}}')
    {'topic/0': 12.0, 'topic/1': 7.0}
    >>> _numbers('{"version": "a"}'), _numbers("null"), _numbers(None)
    (None, None, None)
    """
    flat: dict[str, float] = {}
    pending: list[tuple[str, Any]] = [("", _json(text))]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{place}/{name}" if place else name, inner) for name, inner in reversed(value.items())]
        elif isinstance(value, int | float) and place:
            flat[place] = float(value)
        else:
            return None
    return flat or None
