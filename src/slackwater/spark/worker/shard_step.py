"""One step of a shard on the ordered path, in a Python worker of Spark's, which imports no more than it needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from slackwater.kernel.windows import Rows, WindowOperator, WindowSpec
from slackwater.spark.worker.packed_rows import RESULTS, Key, numbered, pack_results
from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.spark.worker.waiting_rows import Waiting

STATE_FIELDS = ("keys", "operator", "waiting")
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

    The heartbeat comes among them, as a parcel without rows. Only it judges: a row that Spark handed over was counted
    as on time. So a SLACK in rows is kept by the method that decides the heartbeat, as on the native path, and not by
    the operator, which would leave out rows uncounted. Beside a parcel of results stand their number and,
    ``with_edges``, the newest window, in microseconds.
    """
    operator = WindowOperator(window, columns)
    numbers: dict[Key, int] = {}
    waiting = Waiting(grouped=window.grouped)
    if state.exists:
        saved, data, held = state.get
        numbers = {key: number for number, key in enumerate(json.loads(saved))}
        operator.resume(from_text(data, "zstd"))
        waiting = Waiting.from_text(held, grouped=window.grouped)
    heartbeat = operator.heartbeat
    for frame in frames:
        for first, text in zip(frame["first"].tolist(), frame["rows"], strict=True):
            if text is None:
                heartbeat = max(heartbeat, first)
            else:
                waiting.packed_rows.append((first, text))
    if not state.exists and not waiting.packed_rows:
        return
    ready = waiting.release(heartbeat)
    rows = numbered(ready, numbers) if ready else Rows.none(operator.store.columns)
    out = operator.push_panes(rows, heartbeat) if operator.in_panes else operator.push(rows, heartbeat)[0]
    keys = list(numbers)
    state.update((json.dumps(keys), as_text(operator.to_bytes(), "zstd"), waiting.to_text()))
    packed_rows = [
        (pack_results(part, keys), len(part), *((part.start.max(), part.end.max()) if with_edges else (None, None)))
        for part in out.parts(_RESULTS_AT_ONCE)
    ]
    if packed_rows:  # of objects, since Spark's worker puts rows of None beside them
        yield pd.DataFrame(packed_rows, columns=list(RESULTS), dtype=object)
