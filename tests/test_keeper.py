"""What the keeper makes of reports, without Spark: resumes, gaps, repetitions, idleness."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.cells import INVALID_CELL, Cells, decode_cells
from slackwater.spark.exchange import Exchange
from slackwater.spark.keeper import BatchReport, Keeper, PromiseSpec

NOW_MS = 1.7e12


def spec(**promise: float) -> PromiseSpec:
    completeness = Completeness(**{"drop_ratio": 0.01, "min_wait_ms": 100.0, **promise})
    return PromiseSpec("p", "ts", completeness, "budgeted-quantile", {}, [], Exchange(Path("nowhere")))


def cells(margins_ms: list[float], invalid: int = 0) -> Cells:
    margins = np.array(margins_ms) * 1000
    return Cells(margins, np.ones(len(margins), dtype=np.int64), None, int((margins < 0).sum()), invalid)


def report(batch: int, margins_ms: list[float], heartbeat_ms: float | None = None, invalid: int = 0) -> BatchReport:
    clock = NOW_MS + batch * 1000
    reference = clock if heartbeat_ms is None else heartbeat_ms
    return BatchReport(batch, heartbeat_ms, reference, clock, cells(margins_ms, invalid), clock + 500, 5)


def fed(keeper: Keeper, batches: range) -> Keeper:
    for batch in batches:
        keeper.on_batch(report(batch, list(-np.linspace(0, 50, 40)) * 3))
    return keeper


def test_before_the_first_heartbeat_nothing_is_late() -> None:
    keeper = Keeper(spec(), "q", "e")
    keeper.on_batch(report(0, [-5.0, -4.0, -3.0], heartbeat_ms=None, invalid=2))
    assert keeper.ledger == Ledger(on_time=3, invalid=2)


def test_below_the_heartbeat_is_late_and_a_tie_is_not() -> None:
    keeper = Keeper(spec(), "q", "e")
    keeper.on_batch(report(0, [-0.001, 0.0, 7.0], heartbeat_ms=NOW_MS - 500))
    assert keeper.ledger == Ledger(on_time=2, late=1)


def test_a_batch_that_is_reported_twice_counts_once() -> None:
    keeper = fed(Keeper(spec(), "q", "e"), range(3))
    before = keeper.ledger
    keeper.on_batch(report(2, [-1.0]))
    assert keeper.ledger == before


def test_a_snapshot_goes_on_as_if_nothing_had_happened() -> None:
    straight = fed(Keeper(spec(), "q", "e"), range(60))
    first = fed(Keeper(spec(), "q", "e"), range(30))
    second = Keeper(spec(), "q", "e")
    second.resume(json.loads(json.dumps(first.snapshot())), {"heartbeat": first.heartbeat_ms}, next_batch=30)
    fed(second, range(30, 60))
    assert straight.heartbeat_ms is not None
    assert second.heartbeat_ms == straight.heartbeat_ms
    assert second.ledger == straight.ledger
    assert second.mean_wait_ms == straight.mean_wait_ms


def test_without_a_snapshot_the_checkpoint_holds_heartbeat_and_ledger() -> None:
    keeper = Keeper(spec(), "q", "e")
    offset = {"heartbeat": int(NOW_MS), "batch": 7, "ledger": Ledger(on_time=70, late=1).as_json()}
    keeper.resume(None, offset, next_batch=9)
    assert keeper.heartbeat_ms == int(NOW_MS)
    assert keeper.ledger == Ledger(on_time=70, late=1, unreported_batches=1)


def test_a_snapshot_from_the_future_of_an_older_checkpoint_is_ignored() -> None:
    keeper = Keeper(spec(), "q", "e")
    newer = fed(Keeper(spec(), "q", "e"), range(20)).snapshot()
    keeper.resume(newer, {"heartbeat": None}, next_batch=0)
    assert keeper.ledger == Ledger()


def test_idleness_moves_the_heartbeat_only_while_there_is_state() -> None:
    for state_rows, moves in ((5, True), (0, False)):
        keeper = fed(Keeper(spec(idle_after_ms=1000.0), "q", "e"), range(30))
        clock = NOW_MS + 30_000
        last = BatchReport(30, None, clock, clock, cells([-1.0] * 50), clock, state_rows)
        keeper.on_batch(last)
        before = keeper.heartbeat_ms
        keeper.on_idle(clock + 3_600_000)
        assert before is not None and keeper.heartbeat_ms is not None
        assert (keeper.heartbeat_ms > before) == moves


def test_cells_keep_the_source_apart() -> None:
    side = 1 << 15
    decoded = decode_cells([((3 * 4 + 1) * side + 5, 10), ((4 * 4 + 1) * side - 7, 2)], with_sources=True)
    assert decoded.sources is not None
    assert decoded.sources.tolist() == [3, 4]
    assert decoded.below == 2
    assert decode_cells([((3 * 4 + 1) * side + 5, 10)], with_sources=True, rows=12).counts.tolist() == [10]


def test_rows_not_counted_by_their_cells_are_spread_over_the_far_ones() -> None:
    counted = [(-5, 7), (3, 11), (959, 13), (960, 1), (1001, 2), (1500, 3), (INVALID_CELL, 5), (None, 90)]
    cells = decode_cells(counted, with_sources=False, rows=7 + 11 + 13 + 6 + 5 + 90)
    assert (cells.below, cells.invalid) == (7, 5)
    assert cells.counts.tolist() == [7, 11, 13, 16, 32, 48]
    none_far = decode_cells([(3, 11)], with_sources=False, rows=31)
    assert none_far.counts.tolist() == [11, 20]
    assert 10e6 < none_far.margins_us[1] < 10.1e6, "taken for no fresher than they must be"


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(0, 10**6))
def test_every_row_is_in_a_cell_once_spread(counts: list[int], uncounted: int) -> None:
    counted = [(950 + 7 * i, count) for i, count in enumerate(counts)]
    cells = decode_cells(counted, with_sources=False, rows=sum(counts) + uncounted)
    assert cells.counts.sum() == sum(counts) + uncounted
    assert (cells.counts[: len(counts)] >= counts).all()


def test_only_large_micro_batches_with_many_far_cells_are_thinned() -> None:
    def of(rows: int, codes: range) -> Cells:
        return decode_cells([(code, rows // len(codes)) for code in codes], with_sources=False)

    assert of(2_000_000, range(900, 1300)).can_be_thinned
    assert not of(900_000, range(900, 1300)).can_be_thinned, "too few rows"
    assert not of(2_000_000, range(900, 1300, 4)).can_be_thinned, "too few cells: coarse event times"
    assert not of(2_000_000, range(0, 400)).can_be_thinned, "nothing is far"


def test_a_source_that_is_behind_is_called_by_its_name_once_it_is_known() -> None:
    promise = PromiseSpec("p", "ts", Completeness(0.01), "budgeted-quantile", {}, ["host"], Exchange(Path("nowhere")))
    keeper = Keeper(promise, "q", "e")
    for batch in range(80):
        clock = NOW_MS + batch * 1000
        # host 8 stops giving newer rows at batch 40, while the other goes on
        behind = [-50.0] * 30 + [-50.0 - 1000.0 * max(0, batch - 40)] * 10
        counted = Cells(np.array(behind) * 1000, np.ones(40, dtype=np.int64), np.array([7] * 30 + [8] * 10), 0, 0)
        names = {8: "HFDC01"} if batch == 20 else {}
        keeper.on_batch(BatchReport(batch, None, clock, clock, counted, clock + 500, 5, names))
    assert "held: source HFDC01 is behind" in {record.cause for record in keeper.history}
    assert [source[0] for source in keeper.history[-1].sources] == ["HFDC01", "7"]
    again = Keeper(promise, "q", "e")
    again.resume(json.loads(json.dumps(keeper.snapshot())), {"heartbeat": None}, next_batch=80)
    assert again._name(8) == "HFDC01"
