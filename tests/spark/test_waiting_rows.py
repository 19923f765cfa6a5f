"""Each waiting row is released once, when the heartbeat is past it, however parts are split and merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.kernel.windows import Rows
from slackwater.kernel.windows.order import by_group, in_order
from slackwater.spark.worker import waiting_rows as module
from slackwater.spark.worker.packed_rows import Key, KeyedRows, pack_rows, unpack_rows, with_shared_codes
from slackwater.spark.worker.waiting_rows import WaitingRows

KEYS: list[Key] = ["a", None, "c"]
PARTS = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=12), min_size=1, max_size=4
)


def listed(rows: Rows, names: list[Key]) -> list[tuple[int, int, Key]]:
    """(time, number in the order of arrival, key) of each row."""
    columns = zip(rows.attribute.tolist(), rows.values[0].tolist(), rows.keys.tolist(), strict=True)
    return [(at, int(number), names[key]) for at, number, key in columns]


@given(
    batches=st.lists(st.tuples(PARTS, st.integers(0, 30)), max_size=6),
    max_parts=st.sampled_from([2, 64]),
    grouped=st.booleans(),
)
def test_rows_the_heartbeat_has_passed_are_released_once_in_the_order_of_arrival(
    batches: list[tuple[list[list[tuple[int, int]]], int]], max_parts: int, grouped: bool
) -> None:
    """The value of a row is its number in the order of arrival."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_PARTS", max_parts)
        patch.setattr(module, "_MIN_ROWS_TO_SPLIT", 2)
        waiting, heartbeat, arrived = WaitingRows(grouped=grouped), 0, 0
        expected: list[tuple[int, int, Key]] = []
        for parts, rise in batches:
            for part in parts:
                # As under Spark, no row is late, and rows of one time arrive in their order.
                at = [heartbeat + after for after, _ in part]
                rows = Rows.of(at, [key for _, key in part], [np.arange(arrived, arrived + len(part))])
                rows = by_group(rows)[0] if grouped else in_order(rows)
                arrived += len(part)
                waiting.parts.append(pack_rows(list(KEYS), rows))
                expected += listed(rows, KEYS)
            heartbeat += rise
            waiting = WaitingRows.from_text(waiting.to_text(), grouped=grouped)
            codes: dict[Key, int] = {}
            ready = waiting.release(heartbeat)
            found = with_shared_codes(ready, codes) if ready else Rows.empty(1)
            # A stable sort by time (and group) must leave ties in the order of arrival.
            by_time = sorted(listed(found, list(codes)), key=lambda row: (row[0], KEYS.index(row[2]) * grouped))
            passed = (row for row in expected if row[0] < heartbeat)
            assert by_time == sorted(passed, key=lambda row: (row[0], KEYS.index(row[2]) * grouped, row[1]))
            expected = [row for row in expected if row[0] >= heartbeat]
            first = min((part.first for part in waiting.parts), default=None)
            assert first == min((at for at, _, _ in expected), default=None)


def test_each_row_is_unpacked_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []

    def recording(text: str) -> KeyedRows:
        unpacked.append(text)
        return unpack_rows(text)

    monkeypatch.setattr(module, "unpack_rows", recording)
    waiting = WaitingRows([pack_rows(["a"], Rows.of(np.arange(100_000)))])
    for heartbeat in range(1_000, 101_000, 1_000):
        waiting.release(heartbeat)
    rows = sum(len(unpack_rows(text).rows) for text in unpacked)
    assert not waiting.parts and rows < 10 * 100_000, "with a hundred heartbeats, each row is unpacked a few times"


def test_many_small_parts_are_merged() -> None:
    waiting = WaitingRows(pack_rows(["a"], Rows.of([at])) for at in range(1_000))
    assert waiting.release(500) and len(waiting.parts) < 20
    assert [int(at) for _, rows in waiting.release(1_000) for at in rows.attribute] == list(range(500, 1_000))
