"""One micro-batch of one shard on the ordered path. Runs in Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from slackwater.kernel.windows import Results, Rows, SlackBuffer, WindowOperator, WindowSpec, panes_of, takes_panes
from slackwater.kernel.windows.order import by_group, in_order
from slackwater.spark.worker.packed_rows import (
    RESULTS,
    Key,
    PackedRows,
    pack_results,
    pack_rows,
    unpack_rows,
    with_shared_codes,
)
from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.spark.worker.waiting_rows import WaitingRows

_RESULTS_AT_ONCE = 1 << 14  # more make a value of over half a megabyte, which the JVM allocates as a humongous object


class ShardState(NamedTuple):
    """What a shard keeps in Spark's state store: the group keys as JSON, the operator, and the rows that wait.

    ``slack`` is the slack buffer as JSON, empty if there is none.
    """

    keys: str
    operator: str
    waiting: str
    slack: str = "[]"


class Slack(NamedTuple):
    """SLACK in rows: the size of the buffer, and whether the last input of a row is its arrival."""

    rows: int
    by_arrival: bool


def advance_shard(
    window: WindowSpec,
    columns: int,
    frames: Iterable[pd.DataFrame],
    state: GroupState,
    *,
    with_edges: bool = True,
    slack: Slack | None = None,
) -> Iterator[pd.DataFrame]:
    """Add packed rows and the heartbeat to a shard; yields the results that are now complete, packed.

    A heartbeat is an entry without rows. Every row that comes here was counted as on time. With ``slack`` rows are
    judged once more, one by one, and the late ones are counted beside the results.

    :param columns: the number of inputs of the aggregates.
    :param with_edges: put the newest window, in microseconds, beside the results.
    :param slack: SLACK in rows. The whole stream must be one shard.
    """
    operator = WindowOperator(window, columns)
    codes: dict[Key, int] = {}
    waiting = WaitingRows(grouped=window.grouped)
    highest: list[int] = []
    if state.exists:
        saved = ShardState(*state.get)
        codes = {key: code for code, key in enumerate(json.loads(saved.keys))}
        operator.resume(from_text(saved.operator, "zstd"))
        waiting = WaitingRows.from_text(saved.waiting, grouped=window.grouped)
        highest = json.loads(saved.slack)
    heartbeat = operator.heartbeat
    arrived: list[PackedRows] = []
    for frame in frames:
        for first, text in zip(frame["first"].tolist(), frame["rows"], strict=True):
            if text is None:
                heartbeat = max(heartbeat, first)
            else:
                arrived.append(PackedRows(first, text))
    if not state.exists and not arrived:
        return
    late = held = None
    if slack is not None:
        buffer = SlackBuffer(slack.rows, highest)
        arrived, late = _judged(arrived, window, slack, buffer)
        heartbeat, highest = max(heartbeat, buffer.heartbeat), buffer.highest
        held = buffer.held(heartbeat)
    waiting.parts += arrived
    ready = waiting.release(heartbeat)
    rows = with_shared_codes(ready, codes) if ready else Rows.empty(operator.buffer.columns)
    results = operator.advance(rows, heartbeat)
    keys = list(codes)
    saved_operator = as_text(operator.to_bytes(), "zstd")
    state.update(ShardState(json.dumps(keys), saved_operator, waiting.to_text(), json.dumps(highest)))
    packed = [
        (pack_results(part, keys), len(part), *(_edges(part) if with_edges else (None, None)), None, None)
        for part in results.parts(_RESULTS_AT_ONCE)
    ]
    if slack is not None:
        packed.append((None, 0, None, None, late, held))
    if packed:  # as objects, because Spark's worker adds rows of None
        yield pd.DataFrame(packed, columns=list(RESULTS), dtype=object)


def _judged(
    arrived: list[PackedRows], window: WindowSpec, slack: Slack, buffer: SlackBuffer
) -> tuple[list[PackedRows], int]:
    """The rows that are on time, as the operator takes them, and the number of those that are late.

    Rows without an arrival of their own arrive together, so they are judged in the order of their attribute.
    """
    if not arrived:
        return [], 0
    codes: dict[Key, int] = {}
    rows = with_shared_codes((unpack_rows(part.text) for part in arrived), codes)
    arrivals = rows.values[-1] if slack.by_arrival else None
    order = np.argsort(rows.attribute, kind="stable") if arrivals is None else np.lexsort((rows.attribute, arrivals))
    rows = rows.take(order)
    on_time = buffer.judge(rows.attribute)
    kept = rows.take(on_time)
    if slack.by_arrival:
        kept = Rows(kept.attribute, kept.keys, kept.values[:-1])
    late = len(rows) - len(kept)
    if takes_panes(window):
        kept = panes_of(window, kept)
    if not len(kept):
        return [], late
    return [pack_rows(list(codes), by_group(kept)[0] if window.grouped else in_order(kept))], late


def _edges(part: Results) -> tuple[int, int]:
    """The newest window."""
    return int(part.start.max()), int(part.end.max())
