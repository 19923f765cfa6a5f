"""One step of a shard of ``ordered``, in a Python worker of Spark's, which imports no more than it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.units import MS_US

EVENT_COLUMN = "__sw_event_us"


def deliver_shard(columns: list[str], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """One shard takes its rows and gives those that the heartbeat has passed, in order."""
    parts = []
    if state.exists:
        parts.append(pa.ipc.open_stream(pa.py_buffer(from_text(state.get[0]))).read_pandas())
    parts += [frame[[*columns, EVENT_COLUMN]] for frame in frames]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True) if any(map(len, parts)) else None
    watermark_ms = state.getCurrentWatermarkMs()
    if rows is None:
        return
    heartbeat = (watermark_ms + 1) * MS_US if watermark_ms > 0 else rows[EVENT_COLUMN].min()
    rows = rows.sort_values(EVENT_COLUMN, kind="stable", ignore_index=True)
    cut = int(rows[EVENT_COLUMN].searchsorted(heartbeat))
    held = rows.iloc[cut:]
    table = pa.Table.from_pandas(held, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    state.update((as_text(sink.getvalue().to_pybytes()),))
    if len(held):
        state.setTimeoutTimestamp(max(int(held[EVENT_COLUMN].iloc[0]) // MS_US, watermark_ms) + 1)
    if cut:
        yield rows.iloc[:cut][columns]
