"""The ordered path in Python, without a JVM: rows are packed, go through their shards, and results are unpacked."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from slackwater.kernel.windows import WindowSpec, panes_of, takes_panes
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.worker.packed_rows import Key, rows_packer, unpack_results
from slackwater.spark.worker.shard_step import ShardState, advance_shard

ORIGIN_US = 1_700_000_000_000_000
AGGREGATES = (("count", -1), ("max", 0), ("sum", 0))


class State:
    """The part of Spark's ``GroupState`` that a shard uses."""

    def __init__(self) -> None:
        self.get: ShardState | None = None

    @property
    def exists(self) -> bool:
        return self.get is not None

    def update(self, value: ShardState) -> None:
        self.get = value


def stream(keys: list[Key], seed: int) -> list[pa.Table]:
    """Micro-batches of ten seconds, no row more than four seconds late; some values are null."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(4):
        arrived = number * 10_000_000 + np.sort(rng.integers(0, 10_000_000, 300))
        value = rng.integers(0, 100, 300).astype(float)
        made.append(
            pa.table(
                {
                    "at": ORIGIN_US + arrived - rng.integers(0, 4_000_000, 300),
                    "key": pa.array([keys[i] for i in rng.integers(0, len(keys), 300)]),
                    "input_0": pa.array(value, mask=rng.random(300) < 0.1),
                }
            )
        )
    return made


def run(spec: WindowSpec, batches: list[pa.Table], shards: int, integer_keys: bool) -> list[dict[str, Any]]:
    """Two tasks pack every batch; the heartbeat is five seconds behind."""
    states: dict[int, State] = {}
    found: list[dict[str, Any]] = []
    numbers = shard_keys(shards)
    pack = rows_packer(numbers, spec.grouped, partial(panes_of, spec) if takes_panes(spec) else None)
    for number, table in enumerate(batches):
        halves = (table.slice(0, 150), table.slice(150))
        packed = pa.Table.from_batches(p for half in halves for p in pack(iter(half.to_batches(40)))).to_pandas()
        heartbeat = pd.DataFrame({"first": [ORIGIN_US + (number + 1) * 10_000_000 - 5_000_000], "rows": [None]})
        for shard in numbers:
            state = states.setdefault(shard, State())
            rows = packed[packed["shard"] == shard]
            frames = [heartbeat, rows] if number % 2 else [rows, heartbeat]
            for frame in advance_shard(spec, 1, frames, state):  # type: ignore[arg-type]
                results = [row for part in frame["results"] for row in unpack_results(part, integer_keys).to_pylist()]
                assert (frame["count"].sum(), frame["end_us"].max()) == (len(results), max(r["end"] for r in results))
                found += results
    return found


@pytest.mark.parametrize("keys", [["a", "b", None, "c"], [3, -1, 10**15, 7]], ids=["texts", "numbers"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("landmark", [None, ORIGIN_US + 3_000_000], ids=["per row", "landmark"])
def test_results_equal_those_of_all_rows(keys: list[Key], shards: int, landmark: int | None) -> None:
    length, slide = 6_000_000, 2_000_000
    spec = WindowSpec(length, None if landmark is None else slide, aggregates=AGGREGATES, landmark=landmark)
    batches = stream(keys, seed=shards)
    heartbeat = ORIGIN_US + 35_000_000
    rows = [(r["at"], r["key"], r["input_0"]) for table in batches for r in table.to_pylist()]
    if landmark is None:
        asked = [(at - length, at, key) for at, key, _ in rows if at < heartbeat]
        inside = [[v for a, k, v in rows if k == key and start < a <= end] for start, end, key in asked]
    else:
        steps = {(landmark + ((at - landmark) // slide + 1) * slide, key) for at, key, _ in rows if at >= landmark}
        asked = [(landmark, end, key) for end, key in steps if end <= heartbeat]
        inside = [[v for a, k, v in rows if k == key and start <= a < end] for start, end, key in asked]
    expected = []
    for (start, end, key), values in zip(asked, inside, strict=True):
        known = [value for value in values if value is not None]
        folded = (float(len(values)), max(known, default=np.nan), sum(known) if known else np.nan)
        expected.append(repr((start, end, key, *folded)))
    found = [tuple(row.values()) for row in run(spec, batches, shards, isinstance(keys[0], int))]
    assert sorted(map(repr, found)) == sorted(expected) and len(found) > 50
