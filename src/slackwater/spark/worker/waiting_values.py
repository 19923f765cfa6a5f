"""The rows of a shard of standing queries that wait for the heartbeat."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from slackwater.spark.worker.state_text import as_text, from_text

_SCHEMA = pa.schema([("stream", pa.string()), ("at_us", pa.int64()), ("value", pa.float64())])
_COLUMNS = _SCHEMA.names


def release(waiting: str, rows: pd.DataFrame, heartbeat_us: int | None) -> tuple[pd.DataFrame, str, int]:
    """The rows below the heartbeat, in the order of their times; the others as text; and how many these are.

    All waiting rows are read and written in every micro-batch: some 24 bytes per row, and the stream's name.

    :param waiting: the text of the micro-batch before; empty at the start.
    :param heartbeat_us: None if it has not risen. Then no row is released, because no row on time is below it.
    """
    parts = [rows[_COLUMNS]]
    if waiting:
        parts.insert(0, pa.ipc.open_stream(pa.py_buffer(from_text(waiting))).read_pandas())
    filled = [part for part in parts if len(part)]
    every = pd.concat(filled, ignore_index=True) if filled else parts[-1]
    every = every.sort_values("at_us", kind="stable", ignore_index=True)
    every["at_us"] = every["at_us"].astype("int64")
    passed = 0 if heartbeat_us is None else int(every["at_us"].searchsorted(heartbeat_us))
    left = every.iloc[passed:]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        writer.write_table(pa.Table.from_pandas(left.astype({"value": "float64"}), _SCHEMA, preserve_index=False))
    return every.iloc[:passed], as_text(sink.getvalue().to_pybytes()), len(left)
