"""Rows that wait in parcels: each comes out once, when the heartbeat is past it, whatever is cut and put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.kernel.windows import Rows
from slackwater.kernel.windows.order import by_group, in_order
from slackwater.spark.worker import waiting_rows as module
from slackwater.spark.worker.packed_rows import Key, numbered, sealed, unsealed
from slackwater.spark.worker.waiting_rows import Waiting

KEYS: list[Key] = ["a", None, "c"]
PARCELS = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=12), min_size=1, max_size=4
)


def listed(rows: Rows, names: list[Key]) -> list[tuple[int, int, Key]]:
    """Time, number in the order of arrival, key."""
    columns = zip(rows.attribute.tolist(), rows.values[0].tolist(), rows.keys.tolist(), strict=True)
    return [(at, int(number), names[key]) for at, number, key in columns]


@given(
    batches=st.lists(st.tuples(PARCELS, st.integers(0, 30)), max_size=6),
    many=st.sampled_from([2, 64]),
    grouped=st.booleans(),
)
def test_what_the_heartbeat_has_passed_comes_out_once_in_the_order_of_arrival(
    batches: list[tuple[list[list[tuple[int, int]]], int]], many: int, grouped: bool
) -> None:
    """The value of a row is its number in the order of arrival."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MANY", many)
        patch.setattr(module, "_WHOLE", 2)
        waiting, heartbeat, arrived = Waiting(grouped=grouped), 0, 0
        held: list[tuple[int, int, Key]] = []
        for packed_rows, rise in batches:
            for packed in packed_rows:
                # no row is late, as under Spark; inside a parcel rows of one time arrived in their order
                at = [heartbeat + after for after, _ in packed]
                rows = Rows.of(at, [key for _, key in packed], [np.arange(arrived, arrived + len(packed))])
                rows = by_group(rows)[0] if grouped else in_order(rows)
                arrived += len(packed)
                waiting.packed_rows.append(sealed(list(KEYS), rows))
                held += listed(rows, KEYS)
            heartbeat += rise
            waiting = Waiting.from_text(waiting.to_text(), grouped=grouped)
            numbers: dict[Key, int] = {}
            ready = waiting.release(heartbeat)
            found = numbered(ready, numbers) if ready else Rows.none(1)
            # ties: sorted by time alone (and group), they are in the order of arrival
            by_time = sorted(listed(found, list(numbers)), key=lambda row: (row[0], KEYS.index(row[2]) * grouped))
            passed = (row for row in held if row[0] < heartbeat)
            assert by_time == sorted(passed, key=lambda row: (row[0], KEYS.index(row[2]) * grouped, row[1]))
            held = [row for row in held if row[0] >= heartbeat]
            assert min((first for first, _ in waiting.packed_rows), default=None) == min(
                (at for at, _, _ in held), default=None
            )


def test_the_later_half_of_a_parcel_is_not_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def noted(text: str) -> tuple[list[Key], Rows]:
        opened.append(text)
        return unsealed(text)

    monkeypatch.setattr(module, "unsealed", noted)
    waiting = Waiting([sealed(["a"], Rows.of(np.arange(100_000)))])
    for heartbeat in range(1_000, 101_000, 1_000):
        waiting.release(heartbeat)
    rows = sum(len(unsealed(text)[1]) for text in opened)
    assert not waiting.packed_rows and rows < 10 * 100_000, "a hundred heartbeats, and each row was opened a few times"


def test_many_small_parcels_become_few() -> None:
    waiting = Waiting(sealed(["a"], Rows.of([at])) for at in range(1_000))
    assert waiting.release(500) and len(waiting.packed_rows) < 20
    assert [int(at) for _, rows in waiting.release(1_000) for at in rows.attribute] == list(range(500, 1_000))
