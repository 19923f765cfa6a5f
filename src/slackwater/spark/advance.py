"""One step of a shard on the ordered path, in a Python worker of Spark's, which imports no more than it needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from slackwater.kernel import Rows, WindowOperator, WindowSpec
from slackwater.spark.parcels import Key, numbered, pack_results
from slackwater.spark.state_text import as_text, from_text
from slackwater.spark.waiting import Waiting

STATE_FIELDS = ("keys", "operator", "waiting")
_MS_US = 1000
_BEFORE_ALL = -(1 << 63)
_RESULTS_AT_ONCE = 1 << 14  # a parcel of more than half a megabyte is dear to Java, which has a place of its own for it


def advance_shard(
    window: WindowSpec,
    columns: int,
    frames: Iterable[pd.DataFrame],
    state: GroupState,
    *,
    with_edges: bool = True,
) -> Iterator[pd.DataFrame]:
    """One shard takes its parcels and the heartbeat, and gives the results that are complete, in parcels.

    Beside each stand the number of its results and, ``with_edges``, the newest window, in microseconds. Only the
    heartbeat judges: a row that Spark handed over was counted as on time. So a SLACK in rows is kept by the method that
    decides the heartbeat, as on the native path, and not by the operator, which would leave out rows uncounted.
    """
    operator = WindowOperator(window, columns)
    numbers: dict[Key, int] = {}
    waiting = Waiting(grouped=window.grouped)
    if state.exists:
        saved, data, held = state.get
        numbers = {key: number for number, key in enumerate(json.loads(saved))}
        operator.resume(from_text(data, "zstd"))
        waiting = Waiting.from_text(held, grouped=window.grouped)
    for frame in frames:
        waiting.parcels += zip(frame["first"].tolist(), frame["rows"], strict=True)
    watermark_ms = state.getCurrentWatermarkMs()
    # The watermark is a millisecond below the heartbeat; before the first one it is the epoch.
    heartbeat = (watermark_ms + 1) * _MS_US if watermark_ms > 0 else None
    ready = waiting.release(_BEFORE_ALL if heartbeat is None else heartbeat)
    rows = numbered(ready, numbers) if ready else Rows.none(operator.store.columns)
    out = operator.push_panes(rows, heartbeat) if operator.in_panes else operator.push(rows, heartbeat)[0]
    keys = list(numbers)
    state.update((json.dumps(keys), as_text(operator.to_bytes(), "zstd"), waiting.to_text()))
    first = min((at for at in (waiting.first(), operator.store.first()) if at is not None), default=None)
    if first is not None:
        state.setTimeoutTimestamp(max(first // _MS_US, watermark_ms) + 1)
    parcels = []
    for part in out.parts(_RESULTS_AT_ONCE):
        start_us, end_us = (int(part.start.max()), int(part.end.max())) if with_edges else (None, None)
        packed = pack_results(part, keys)
        parcels.append({"results": packed, "count": len(part), "start_us": start_us, "end_us": end_us})
    if parcels:
        yield pd.DataFrame(parcels, dtype=object)  # of objects, since Spark's worker puts rows of None beside it
