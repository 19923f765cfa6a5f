"""A shard continues from its bytes as if it had never stopped, and follows changes of its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from slackwater.errors import InvalidData
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.weights import ShardWeights, match_queries
from slackwater.sim.brownian import brownian_streams
from slackwater.sim.standing import true_answers
from slackwater.spark.runtime.sharding import PERIOD, murmur3, shard_keys
from slackwater.spark.worker.weights_table import WeightsTable

TICK_MS = 60_000.0
ROWS = [(f"p{query}", f"s{(query + stream) % 4}", 1.0 + stream) for query in range(6) for stream in range(3)]


def weights(rows: list[tuple[Any, ...]] = ROWS, within: Any = 5.0, confidence: Any = 0.9) -> ShardWeights:
    columns = ["query", "stream", "weight", "within", "confidence"][: len(rows[0]) if rows else 3]
    return ShardWeights(pd.DataFrame(rows, columns=columns), within, confidence)


def shard(some: ShardWeights, state: bytes | None = None, **options: Any) -> Shard:
    return Shard(some, EvaluatorOptions(**options), 0, state)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "economical"},
        {"method": "brownian", "value_and_drift": True},
        {"aggregate": "max", "window": 7 * TICK_MS},
        {"aggregate": "min", "landmark": 3 * TICK_MS},
        {"capacity": 2},
    ],
)
def test_a_shard_continues_from_its_state(options: dict[str, Any]) -> None:
    table = brownian_streams(4, 60, seed=1)
    table.values[30:40, 1] = np.nan  # an interruption, and a return
    whole, state = shard(weights(), **options), None
    for at, row in zip(table.times, table.values, strict=True):
        there = ~np.isnan(row)
        rows = ([n for n, t in zip(table.names, there, strict=True) if t], np.full(there.sum(), at), row[there])
        again = shard(weights(), state, **options)
        pd.testing.assert_frame_equal(whole.tick(*rows), again.tick(*rows))
        state = again.state()
    assert 0 < whole.evaluator.evaluations < 6 * 60


def test_counts_describe_the_micro_batch() -> None:
    table = brownian_streams(4, 200, seed=1)
    one, counts = shard(weights([*ROWS, ("lost", "never-seen", 1.0)])), []
    for at, row in zip(table.times, table.values, strict=True):
        answers = one.tick(table.names, np.full(4, at), row)
        assert one.counts.evaluated == int(answers["value"].notna().sum())
        assert (one.counts.queries, one.counts.withheld) == (7, 1)
        counts.append(one.counts)
    every = ShardCounts.together(counts)
    assert every.evaluated == one.evaluator.evaluations
    assert every.judged == every.evaluated - 6, "the first answers had none before them"
    assert every.expected == pytest.approx(0.9 * every.judged)
    assert 0 < every.within <= every.audited and every.asked == pytest.approx(0.9 * every.audited)


def test_a_state_with_other_options_is_ignored() -> None:
    table = brownian_streams(4, 30, seed=1)
    first = shard(weights(within=1e6), max_deferral=1e9)
    for at, row in zip(table.times, table.values, strict=True):
        first.tick(table.names, np.full(4, at), row)
    again = shard(weights(within=1e6), first.state(), max_deferral=1e9, k=50)
    assert len(again.tick(table.names, np.full(4, 31 * TICK_MS), table.values[-1])) == 6


def test_only_changed_queries_are_evaluated_at_once() -> None:
    table = brownian_streams(4, 30, seed=2)
    before = shard(weights(within=1e6), max_deferral=1e9)
    for at, row in zip(table.times, table.values, strict=True):
        before.tick(table.names, np.full(4, at), row)
    kept = [row for row in ROWS if row[0] not in ("p0", "p1")]
    rows = [*reversed(kept), ("p1", "s0", 7.0), ("a-new", "s2", 1.0), ("lost", "ghost", 1.0)]
    after = shard(weights(rows, within=1e6), before.state(), max_deferral=1e9)
    found = after.tick(table.names, np.full(4, 31 * TICK_MS), table.values[-1])
    assert sorted(found["query"]) == ["a-new", "lost", "p1"], "only the changed and the new ones are evaluated"
    lost = found.set_index("query").loc["lost"]
    assert np.isnan(lost["value"])
    assert lost["interrupted_streams"] == 1
    again = shard(weights(rows, within=1e6), after.state(), max_deferral=1e9)
    assert again.tick(table.names, np.full(4, 32 * TICK_MS), table.values[-1]).empty, "reported once"


def test_fingerprints_identify_a_query_by_id_and_contents() -> None:
    one, other = weights(), weights(list(reversed(ROWS)))
    there = list(range(6))
    assert [part.tolist() for part in match_queries(other.fingerprints, one.fingerprints)] == [there, [True] * 6]
    heavier = weights([(query, stream, 2 * weight) for query, stream, weight in ROWS])
    for changed in (weights(within=6.0), weights(within="5%"), weights(confidence=0.8), heavier):
        assert [part.tolist() for part in match_queries(changed.fingerprints, one.fingerprints)] == [there, [False] * 6]
    for before in (weights([]), weights([("other", "s0", 1.0)])):
        assert match_queries(one.fingerprints, before.fingerprints)[0].tolist() == [-1] * 6


def test_a_changed_query_keeps_its_calibration() -> None:
    table = brownian_streams(4, 80, seed=2, degrees_of_freedom=2.5)
    before = shard(weights())
    for at, row in zip(table.times, table.values, strict=True):
        before.tick(table.names, np.full(4, at), row)
    rows = [(query, stream, 2 * weight if query == "p1" else weight) for query, stream, weight in ROWS if query != "p0"]
    after = shard(weights(rows), before.state())
    learned, still_learned = before.evaluator.snapshot(), after.evaluator.snapshot()
    assert learned["query.hit_caution"][1] != 0.0
    for name in ("hit_caution", "fidelity_caution", "mean_ticks", "count"):
        assert np.array_equal(still_learned[f"query.{name}"], learned[f"query.{name}"][1:])
    assert after.evaluator.next_at[0] == -np.inf
    assert np.array_equal(after.evaluator.next_at[1:], before.evaluator.next_at[2:])


def test_a_window_sees_every_tick_of_a_micro_batch() -> None:
    table = brownian_streams(4, 40, seed=4)
    window = EvaluatorOptions(aggregate="max", window=7 * TICK_MS)
    mine = weights()
    names = [*table.names]
    truth = true_answers(table, mine.over(names)[0], window)
    one = Shard(mine, window, 0, None)
    for start, end in ((0, 1), (1, 21), (21, 24), (24, 40)):
        codes = [name for _ in range(start, end) for name in names]
        found = one.tick(codes, np.repeat(table.times[start:end], 4), table.values[start:end].ravel())
        for query, value in zip(found["query"], found["value"], strict=True):
            assert value == pytest.approx(truth[end - 1, int(query[1:])], rel=1e-12)
    assert one.evaluator.evaluations >= 12


def test_the_clock_advances_time_while_no_row_comes() -> None:
    table = brownian_streams(4, 20, seed=3)
    one = shard(weights())
    nothing = np.empty(0)
    assert one.tick([], nothing, nothing, 5.0).empty, "no time yet"
    for at, row in zip(table.times, table.values, strict=True):
        one.tick(table.names, np.full(4, at), row, 1e12 + at)
    found = one.tick([], nothing, nothing, 1e12 + table.times[-1] + 10 * TICK_MS)
    assert set(found["query"]) == {row[0] for row in ROWS}
    assert set(found["at"]) == {table.times[-1] + 10 * TICK_MS}
    assert set(found["interrupted_streams"]) == {3}


def test_a_row_from_the_future_changes_nothing() -> None:
    one = shard(weights([("a", "s0", 1.0)]))
    one.tick(["s0"], np.array([0.0]), np.array([1.0]), 0.0)
    found = one.tick(["s0", "s0"], np.array([1e12, 1000.0]), np.array([99.0, 2.0]), 1000.0)
    assert found[["at", "value"]].to_numpy().tolist() == [[1000.0, 2.0]]
    assert one.evaluator.estimator.intake.invalid == 1


def test_invalid_rows_and_promises_in_the_weights() -> None:
    rows = [
        ("a", "s0", float("nan"), 1.0, 0.9),
        ("b", "s0", 1.0, 1.0, 0.9),
        ("zero", "s0", 1.0, "0", "90%"),
        ("negative", "s0", 1.0, -1.0, 0.9),
        ("certain", "s0", 1.0, 1.0, 1.0),
        ("hopeless", "s0", 1.0, 1.0, 0.0),
        ("silent", "s0", 1.0, None, 0.9),
        ("twice", "s0", 1.0, 1.0, 0.9),
        ("twice", "s0", 2.0, 1.0, 0.9),
        (None, "s0", 1.0, 1.0, 0.9),
        ("c", None, 1.0, 1.0, 0.9),
    ]
    one = shard(weights(rows, None, None))
    found = one.tick(["s0"], np.zeros(1), np.full(1, 5.0)).set_index("query")
    assert found["value"].dropna().to_dict() == {"b": 5.0, "zero": 5.0, "twice": 15.0}
    assert set(found.index[found["value"].isna()]) == {"negative", "certain", "hopeless", "silent"}
    again = shard(weights(rows, None, None), one.state())
    assert set(again.tick(["s0"], np.ones(1), np.full(1, 5.0))["query"]) == {"b", "zero", "twice"}, "reported once"


def test_weights_are_read_again_when_their_files_change(tmp_path: Path) -> None:
    def put(rows: list[tuple[Any, ...]], name: str = "w.parquet") -> None:
        pd.DataFrame(rows, columns=["portfolio", "symbol", "weight"]).to_parquet(tmp_path / name)

    def ids(shards: int = 1) -> list[Any]:
        table = WeightsTable(str(tmp_path), "portfolio", "symbol", "weight", 1.0, 0.9, shards)
        return sorted(query for number in range(shards) for query in table.shard(number).queries.ids)

    assert ids() == [], "an empty folder"
    put(ROWS)
    assert ids() == ids(3) == sorted({row[0] for row in ROWS})
    (tmp_path / "_temporary").mkdir()
    put([("x", "s0", 1.0)])
    assert ids() == sorted({row[0] for row in ROWS}), "being rewritten: the version before holds"
    (tmp_path / "_temporary").rmdir()
    assert ids() == ["x"]
    put([], "w.parquet")
    assert ids() == [], "a table without rows has no queries"
    pd.DataFrame({"portfolio": ["a"]}).to_parquet(tmp_path / "w.parquet")
    with pytest.raises(InvalidData, match="no-such-column"):
        ids()


def test_shards_spread_evenly_over_partitions() -> None:
    keys = np.array(shard_keys(48), dtype=np.int32)
    assert len(set(keys.tolist())) == 48
    for partitions in (1, 2, 3, 4, 6, 8, 12, 16, 24, 48):
        assert PERIOD % partitions == 0
        assert set(np.bincount(np.mod(murmur3(keys), partitions)).tolist()) == {48 // partitions}
