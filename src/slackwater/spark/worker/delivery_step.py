"""One micro-batch of one shard of ``ordered``. Runs in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from slackwater.spark.worker.columns import EVENT_US
from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.units import MS_US


class DeliveryState(NamedTuple):
    """What a shard keeps in Spark's state store: the rows that wait, as an Arrow stream."""

    rows: str


def deliver_shard(columns: list[str], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Add rows to a shard; yields the rows that the heartbeat has passed, in order."""
    parts = []
    if state.exists:
        saved = DeliveryState(*state.get)
        parts.append(pa.ipc.open_stream(pa.py_buffer(from_text(saved.rows))).read_pandas())
    parts += [frame[[*columns, EVENT_US]] for frame in frames]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True) if any(map(len, parts)) else None
    watermark_ms = state.getCurrentWatermarkMs()
    if rows is None:
        return
    # Spark's watermark is one millisecond below the heartbeat.
    heartbeat_us = (watermark_ms + 1) * MS_US if watermark_ms > 0 else rows[EVENT_US].min()
    rows = rows.sort_values(EVENT_US, kind="stable", ignore_index=True)
    passed = int(rows[EVENT_US].searchsorted(heartbeat_us))
    waiting = rows.iloc[passed:]
    state.update(DeliveryState(_as_state(waiting)))
    if len(waiting):
        state.setTimeoutTimestamp(max(int(waiting[EVENT_US].iloc[0]) // MS_US, watermark_ms) + 1)
    if passed:
        yield rows.iloc[:passed][columns]


def _as_state(rows: pd.DataFrame) -> str:
    table = pa.Table.from_pandas(rows, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return as_text(sink.getvalue().to_pybytes())
