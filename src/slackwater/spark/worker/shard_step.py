"""One micro-batch of one shard on the ordered path. Runs in Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from slackwater.kernel.windows import Rows, WindowOperator, WindowSpec
from slackwater.spark.worker.packed_rows import RESULTS, Key, PackedRows, pack_results, with_shared_codes
from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.spark.worker.waiting_rows import WaitingRows

_RESULTS_AT_ONCE = 1 << 14  # more make a value of over half a megabyte, which the JVM allocates as a humongous object


class ShardState(NamedTuple):
    """What a shard keeps in Spark's state store: the group keys as JSON, the operator, and the rows that wait."""

    keys: str
    operator: str
    waiting: str


def advance_shard(
    window: WindowSpec,
    columns: int,
    frames: Iterable[pd.DataFrame],
    state: GroupState,
    *,
    with_edges: bool = True,
) -> Iterator[pd.DataFrame]:
    """Add packed rows and the heartbeat to a shard; yields the results that are now complete, packed.

    A heartbeat is an entry without rows. Rows were judged before: every row that comes here was counted as on time.
    So SLACK in rows is kept by the method that decides the heartbeat, not here, where left out rows would not be
    counted.

    :param columns: the number of inputs of the aggregates.
    :param with_edges: put the newest window, in microseconds, beside the results.
    """
    operator = WindowOperator(window, columns)
    codes: dict[Key, int] = {}
    waiting = WaitingRows(grouped=window.grouped)
    if state.exists:
        saved = ShardState(*state.get)
        codes = {key: code for code, key in enumerate(json.loads(saved.keys))}
        operator.resume(from_text(saved.operator, "zstd"))
        waiting = WaitingRows.from_text(saved.waiting, grouped=window.grouped)
    heartbeat = operator.heartbeat
    for frame in frames:
        for first, text in zip(frame["first"].tolist(), frame["rows"], strict=True):
            if text is None:
                heartbeat = max(heartbeat, first)
            else:
                waiting.parts.append(PackedRows(first, text))
    if not state.exists and not waiting.parts:
        return
    ready = waiting.release(heartbeat)
    rows = with_shared_codes(ready, codes) if ready else Rows.empty(operator.buffer.columns)
    results = operator.advance(rows, heartbeat)
    keys = list(codes)
    state.update(ShardState(json.dumps(keys), as_text(operator.to_bytes(), "zstd"), waiting.to_text()))
    packed = [
        (pack_results(part, keys), len(part), *((part.start.max(), part.end.max()) if with_edges else (None, None)))
        for part in results.parts(_RESULTS_AT_ONCE)
    ]
    if packed:  # as objects, because Spark's worker adds rows of None
        yield pd.DataFrame(packed, columns=list(RESULTS), dtype=object)
