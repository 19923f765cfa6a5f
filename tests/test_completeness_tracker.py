"""CompletenessTracker without Spark: resumption, gaps, repeated batches and idle streams."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.choice import Method
from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.completeness.batches import BatchObservation
from slackwater.spark.completeness.histogram import INVALID_CELL, Cells, decode_cells
from slackwater.spark.completeness.lateness import LatenessHistory
from slackwater.spark.completeness.open_windows import OpenRows, WindowGrid
from slackwater.spark.completeness.tracker import CompletenessSpec, CompletenessTracker
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.mailbox import Mailbox

NOW_MS = 1.7e12


def spec(**promise: float) -> CompletenessSpec:
    completeness = Completeness(**{"drop_ratio": 0.01, "min_wait_ms": 100.0, **promise})
    return CompletenessSpec("p", "ts", completeness, Method("budgeted-quantile"), [], Mailbox(Path("nowhere")))


def cells(margins_ms: list[float], invalid: int = 0) -> Cells:
    margins = np.array(margins_ms) * 1000
    counts, newest_us = np.ones(len(margins), dtype=np.int64), float(margins.max(initial=-np.inf))
    return Cells(margins, counts, None, int((margins < 0).sum()), invalid, newest_us=newest_us)


def report(
    batch: int, margins_ms: list[float], heartbeat_ms: float | None = None, invalid: int = 0
) -> BatchObservation:
    clock = NOW_MS + batch * 1000
    reference = clock if heartbeat_ms is None else heartbeat_ms
    return BatchObservation(batch, heartbeat_ms, reference, clock, cells(margins_ms, invalid), clock + 500, 5)


def fed(tracker: CompletenessTracker, batches: range) -> CompletenessTracker:
    for batch in batches:
        tracker.on_batch(report(batch, list(-np.linspace(0, 50, 40)) * 3))
    return tracker


def test_before_the_first_heartbeat_nothing_is_late() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    tracker.on_batch(report(0, [-5.0, -4.0, -3.0], heartbeat_ms=None, invalid=2))
    assert tracker.ledger == Ledger(on_time=3, invalid=2)


def test_rows_before_the_first_heartbeat_are_measured_from_the_clock_before_them() -> None:
    """The length of a micro-batch is no lateness, whatever clock the policies before the first heartbeat had."""

    def after(chosen_at_ms: float | None) -> CompletenessTracker:
        tracker = CompletenessTracker(spec(), "q", "e")
        tracker.on_batch(report(0, [-5.0, -4.0, -3.0]))
        second = report(1, list(-np.linspace(0, 3000, 400)))
        tracker.on_batch(dataclasses.replace(second, chosen_at_ms=chosen_at_ms))
        return fed(tracker, range(2, 8))

    fresh = after(NOW_MS)
    assert fresh.heartbeat_ms is not None
    assert after(None).policy == after(NOW_MS - 5000).policy == fresh.policy


def test_below_the_heartbeat_is_late_and_a_tie_is_not() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    tracker.on_batch(report(0, [-0.001, 0.0, 7.0], heartbeat_ms=NOW_MS - 500))
    assert tracker.ledger == Ledger(on_time=2, late=1)


def test_a_batch_that_is_reported_twice_counts_once() -> None:
    tracker = fed(CompletenessTracker(spec(), "q", "e"), range(3))
    before = tracker.ledger
    tracker.on_batch(report(2, [-1.0]))
    assert tracker.ledger == before


def test_a_snapshot_goes_on_as_if_nothing_had_happened() -> None:
    straight = fed(CompletenessTracker(spec(), "q", "e"), range(60))
    first = fed(CompletenessTracker(spec(), "q", "e"), range(30))
    second = CompletenessTracker(spec(), "q", "e")
    second.resume(json.loads(json.dumps(first.snapshot())), HeartbeatOffset("e", first.heartbeat_ms), next_batch=30)
    fed(second, range(30, 60))
    assert straight.heartbeat_ms is not None
    assert second.heartbeat_ms == straight.heartbeat_ms
    assert second.ledger == straight.ledger
    assert second.mean_wait_ms == straight.mean_wait_ms


def test_without_a_snapshot_the_checkpoint_holds_heartbeat_and_ledger() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    offset = HeartbeatOffset("e", int(NOW_MS), batch=7, ledger=Ledger(on_time=70, late=1).as_json())
    tracker.resume(None, offset, next_batch=9)
    assert tracker.heartbeat_ms == int(NOW_MS)
    assert tracker.ledger == Ledger(on_time=70, late=1, unreported_batches=1)


def test_a_snapshot_out_of_an_older_folder_takes_no_row_out_of_the_count() -> None:
    tracker, older = (
        CompletenessTracker(spec(), "q", "e"),
        fed(CompletenessTracker(spec(), "q", "e"), range(5)).snapshot(),
    )
    offset = HeartbeatOffset("e", int(NOW_MS), batch=7, ledger=Ledger(on_time=70, late=1).as_json())
    tracker.resume(older, offset, next_batch=8)
    assert tracker.ledger == Ledger(on_time=70, late=1)


def test_a_batch_that_was_not_judged_is_in_no_count() -> None:
    tracker = fed(CompletenessTracker(spec(), "q", "e"), range(3))
    before = tracker.ledger
    tracker.skip_batch(3)
    tracker.skip_batch(3)
    assert tracker.ledger == before + Ledger(unreported_batches=1)
    fed(tracker, range(3, 4))
    assert tracker.ledger == before + Ledger(unreported_batches=1)


def test_micro_batches_without_a_report_are_counted_later() -> None:
    tracker = fed(CompletenessTracker(spec(), "q", "e"), range(2))
    before = tracker.ledger
    tracker.on_batch(report(4, [-5.0]))
    assert tracker.unreported == [2, 3]
    assert tracker.ledger == before + Ledger(on_time=1, unreported_batches=2)
    tracker.on_recount(3, Ledger(on_time=7, late=2))
    resumed = CompletenessTracker(spec(), "q", "e")
    resumed.resume(json.loads(json.dumps(tracker.snapshot())), HeartbeatOffset("e"), next_batch=5)
    assert resumed.unreported == [2]
    for _ in range(2):  # a second time it changes nothing
        resumed.on_recount(2, Ledger(on_time=10, invalid=1))
    assert resumed.ledger == before + Ledger(on_time=18, late=2, invalid=1)


def test_what_was_missed_before_a_restart_is_missed_once() -> None:
    tracker = fed(CompletenessTracker(spec(), "q", "e"), range(2))
    before = tracker.ledger
    resumed = CompletenessTracker(spec(), "q", "e")
    resumed.resume(tracker.snapshot(), HeartbeatOffset("e"), next_batch=4)
    resumed.on_batch(report(4, [-5.0]))
    assert resumed.unreported == [2, 3]
    for batch in (2, 3):
        resumed.on_recount(batch, Ledger(on_time=7))
    assert resumed.ledger == before + Ledger(on_time=15)


def test_a_snapshot_from_the_future_of_an_older_checkpoint_is_ignored() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    newer = fed(CompletenessTracker(spec(), "q", "e"), range(20)).snapshot()
    tracker.resume(newer, HeartbeatOffset("e"), next_batch=0)
    assert tracker.ledger == Ledger()


def test_idleness_moves_the_heartbeat_only_while_there_is_state() -> None:
    for state_rows, moves in ((5, True), (0, False)):
        tracker = fed(CompletenessTracker(spec(idle_after_ms=1000.0), "q", "e"), range(30))
        clock = NOW_MS + 30_000
        last = BatchObservation(30, None, clock, clock, cells([-1.0] * 50), clock, state_rows)
        tracker.on_batch(last)
        before = tracker.heartbeat_ms
        tracker.on_idle(clock + 3_600_000)
        assert before is not None and tracker.heartbeat_ms is not None
        assert (tracker.heartbeat_ms > before) == moves


def test_cells_keep_the_source_apart() -> None:
    side = 1 << 15
    decoded = decode_cells([((3 * 4 + 1) * side + 5, 10), ((4 * 4 + 1) * side - 7, 2)], with_sources=True)
    assert decoded.sources is not None
    assert decoded.sources.tolist() == [3, 4]
    assert decoded.below == 2
    assert decode_cells([((3 * 4 + 1) * side + 5, 10)], with_sources=True, rows=12).counts.tolist() == [10]


PROBES = [(INVALID_CELL + 1 + number, 1) for number in range(64)]


def test_rows_not_counted_by_their_cells_are_spread_over_the_far_ones() -> None:
    counted = [(-5, 7), (3, 11), (719, 13), (720, 1), (1001, 2), (1500, 3), (INVALID_CELL, 5), (None, 26), *PROBES]
    cells = decode_cells(counted, with_sources=False, rows=7 + 11 + 13 + 6 + 5 + 26 + 64)
    assert (cells.below, cells.invalid, cells.unplaced) == (7, 5, 0)
    assert cells.counts.tolist() == [7, 11, 13, 16, 32, 48]
    assert 1.0e6 < cells.margins_us[3] < 1.01e6


def test_before_the_first_heartbeat_all_rows_are_far() -> None:
    cells = decode_cells([(-1500, 1), (-1400, 3), *PROBES], with_sources=False, rows=80, sample_from_us=-1e16)
    assert cells.counts.tolist() == [20, 60]


@pytest.mark.parametrize("probes", [[], PROBES[:39]])
def test_nothing_is_learned_from_rows_that_a_part_does_not_tell_of(probes: list[tuple[int, int]]) -> None:
    """If all times are whole seconds, a hash of the time may select none of them or only a few."""
    counted = [(-5, 7), (3, 11), (1001, 2), (INVALID_CELL, 5), *probes]
    decoded = decode_cells(counted, with_sources=False, rows=1_000_025)
    assert (decoded.counts.tolist(), decoded.below, decoded.invalid) == ([7, 11], 7, 5)
    assert (decoded.unplaced, decoded.rows) == (1_000_002, 1_000_020)
    tracker = CompletenessTracker(spec(), "q", "e")
    tracker.on_batch(dataclasses.replace(report(0, [], heartbeat_ms=NOW_MS - 5000), cells=decoded))
    assert tracker.ledger == Ledger(on_time=1_000_013, late=7, invalid=5)
    exact = decode_cells([(1000 + number, 5000) for number in range(400)], with_sources=False)
    assert exact.can_be_sampled
    tracker.on_batch(dataclasses.replace(report(1, [], heartbeat_ms=NOW_MS - 5000), cells=exact))
    assert not tracker.sample_cells, "its event times are too coarse"


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(64, 10**6))
def test_every_row_is_in_a_cell_once_spread(counts: list[int], uncounted: int) -> None:
    counted = [(719 + 7 * i, count) for i, count in enumerate([1, *counts])]
    cells = decode_cells([*counted, *PROBES], with_sources=False, rows=1 + sum(counts) + uncounted)
    assert cells.counts.sum() == 1 + sum(counts) + uncounted
    assert cells.counts[0] == 1
    assert (cells.counts[1:] >= counts).all()


def test_only_large_micro_batches_are_thinned() -> None:
    def of(rows: int) -> Cells:
        return decode_cells([(code, rows // 400) for code in range(900, 1300)], with_sources=False)

    assert of(2_000_000).can_be_sampled
    assert not of(90_000).can_be_sampled, "too few rows"


def test_a_source_that_is_behind_is_called_by_its_name_once_it_is_known() -> None:
    promise = CompletenessSpec(
        "p", "ts", Completeness(0.01), Method("budgeted-quantile"), ["host"], Mailbox(Path("nowhere"))
    )
    tracker = CompletenessTracker(promise, "q", "e")
    outcomes = []
    for batch in range(80):
        clock = NOW_MS + batch * 1000
        # host 8 sends no newer rows after batch 40, while the other host goes on
        behind = [-50.0] * 30 + [-50.0 - 1000.0 * max(0, batch - 40)] * 10
        counted = Cells(np.array(behind) * 1000, np.ones(40, dtype=np.int64), np.array([7] * 30 + [8] * 10), 0, 0)
        names = {8: "HFDC01"} if batch == 20 else {}
        outcomes.append(tracker.on_batch(BatchObservation(batch, None, clock, clock, counted, clock + 500, 5, names)))
    assert "held: source HFDC01 is behind" in {outcome.cause for outcome in outcomes if outcome is not None}
    assert outcomes[-1] is not None
    assert [source[0] for source in outcomes[-1].sources] == ["HFDC01", "with hash 7"]
    again = CompletenessTracker(promise, "q", "e")
    again.resume(json.loads(json.dumps(tracker.snapshot())), HeartbeatOffset("e"), next_batch=80)
    assert again._source_name(8) == "HFDC01"


def test_the_offset_of_a_number_is_refreshed_by_the_clock() -> None:
    """Kim 2010, §4: every second, whatever the numbers are; here they grow by ten in a second and then in a tenth."""

    def offsets(step_ms: float) -> list[float]:
        number = dataclasses.replace(
            spec(drop_ratio=0.05, min_wait_ms=0.0), method=Method("mean-distance"), numeric_order=True
        )
        tracker = CompletenessTracker(number, "q", "e")
        found = []
        for batch in range(21):
            clock = 1e6 + 10.0 * batch
            margins = cells([0.0, 2.0, 5.0, 9.0])
            observed = BatchObservation(batch, None, clock - 10.0, clock, margins, NOW_MS + step_ms * batch, 5)
            tracker.on_batch(observed)
            found.append(tracker.controller.snapshot()["learned"]["offset"])
        return found

    every_second, every_tenth = offsets(1000.0), offsets(100.0)
    assert len(set(every_second)) == 21
    assert len(set(every_tenth)) == 3 and every_tenth[9] == 0.0 < every_tenth[10]


WINDOWS = WindowGrid(10_000.0, 10_000.0)


def test_the_end_of_a_stream_closes_the_windows_of_all_its_rows() -> None:
    tracker = CompletenessTracker(dataclasses.replace(spec(), grid=WINDOWS), "q", "e")
    tracker.on_batch(report(0, [-50.0, 700.0, 12_345.0]))
    ledger, newest_ms = tracker.ledger, NOW_MS + 12_345.0
    tracker.end_stream()
    assert tracker.heartbeat_ms is not None and tracker.policy is not None
    assert newest_ms + 10_000.0 < tracker.heartbeat_ms < newest_ms + 10_100.0
    tracker.on_idle(NOW_MS + 3_600_000.0)
    assert tracker.policy.heartbeat_at(NOW_MS + 3_600_000.0) == tracker.heartbeat_ms, "it stands, whatever the time is"
    outcome = tracker.on_batch(report(1, [], heartbeat_ms=tracker.heartbeat_ms))
    assert outcome is not None
    assert (outcome.cause, outcome.wait_ms, outcome.open_rows) == ("the stream has ended", None, 0)
    assert tracker.ledger == ledger


def test_a_stream_without_rows_has_no_end() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    tracker.on_batch(report(0, []))
    tracker.end_stream()
    assert (tracker.heartbeat_ms, tracker.policy) == (None, None)


def test_a_restart_knows_where_the_stream_ends_and_what_is_open() -> None:
    tracker = CompletenessTracker(dataclasses.replace(spec(), grid=WINDOWS), "q", "e")
    tracker.on_batch(report(0, [0.0, 12_345.0]))
    again = CompletenessTracker(tracker.spec, "q", "e")
    again.resume(json.loads(json.dumps(tracker.snapshot())), HeartbeatOffset("e"), next_batch=1)
    assert again.open_rows == 2
    again.end_stream()
    tracker.end_stream()
    assert again.heartbeat_ms == tracker.heartbeat_ms is not None


@given(
    st.sampled_from([(10, 10), (10, 5), (15, 10), (60, 1)]),
    st.lists(st.integers(0, 200_000), min_size=1, max_size=30),
    st.integers(1, 250_000),
)
def test_open_rows_are_those_in_windows_above_the_heartbeat(
    window: tuple[int, int], events: list[int], heartbeat: int
) -> None:
    length, step = (1000 * part for part in window)
    grid, rows = WindowGrid(float(length), float(step)), OpenRows()
    rows.add(np.array(events, dtype=np.float64), np.ones(len(events), dtype=np.int64))
    rows.forget_below(grid.open_from_ms(float(heartbeat)))
    starts = {e: range(e // step * step, e - length, -step) for e in events}
    assert rows.count == sum(any(start + length > heartbeat - 1 for start in starts[e]) for e in events)
    open_windows = {s for e in events for s in starts[e] if s + length > heartbeat - 1}
    possible = grid.open_windows(float(heartbeat), float(max(events)))
    assert possible is not None and possible >= len(open_windows)
    end = grid.end_of_stream_ms(float(max(events)))
    assert grid.open_windows(end, float(max(events))) == 0


def test_many_cells_are_merged_and_every_row_stays() -> None:
    rows = OpenRows()
    for start in range(0, 20_000, 500):
        rows.add(np.arange(start, start + 500.0), np.full(500, 2))
    assert rows.count == 40_000
    widest = np.diff(rows._values).max()
    rows.forget_below(10_000.0)
    assert 20_000 - 2 * widest <= rows.count <= 20_000
    values, counts = rows.snapshot()
    assert len(values) == len(counts) <= 64 and sum(counts) == rows.count


def test_the_highest_cell_bounds_the_newest_row() -> None:
    cells = decode_cells([(5, 3), (-7, 2), (INVALID_CELL, 1)], with_sources=False)
    assert cells.margins_us.max() < cells.newest_us and not cells.sampled
    assert decode_cells([(-2, 1)], with_sources=False).newest_us < 0.0
    assert decode_cells([(5, 3), *PROBES], with_sources=False).sampled


def test_lateness_is_that_of_the_run_and_of_the_last_minutes_not_of_the_micro_batch() -> None:
    """A micro-batch of a minute whose rows come within 0.3 s: behind its end they are half a minute in the median."""
    tracker = CompletenessTracker(spec(), "q", "e")
    behind_ms = -np.linspace(0.0, 60_000.0, 600)
    for batch, late_ms in enumerate((300.0, 300.0, 40.0)):
        cell = math.floor((late_ms * 1e3) ** 0.125 * 32)
        observed = dataclasses.replace(
            report(100 * batch, behind_ms.tolist()),
            lateness=((cell, 600), (None, 2)),
            began_ms=NOW_MS + 100_000.0 * batch - 60_000.0,
            reported_at_ms=NOW_MS + 200_000.0 * batch,
        )
        outcome = tracker.on_batch(observed)
    assert outcome is not None and outcome.lateness is not None
    assert outcome.lateness.quantiles_ms[0] > 25_000.0 and outcome.span_ms == 60_000.0
    assert outcome.run_lateness_ms is not None and outcome.recent_lateness_ms is not None
    assert outcome.run_lateness_ms[1] == outcome.run_lateness_ms[2] == pytest.approx(300.0, rel=0.06)
    assert outcome.run_lateness_ms[1] >= 300.0
    assert outcome.recent_lateness_ms[0] == pytest.approx(40.0, rel=0.06), "the first is more than five minutes ago"
    assert outcome.recent_lateness_ms[3] == outcome.run_lateness_ms[3]
    again = CompletenessTracker(spec(), "q", "e")
    again.resume(json.loads(json.dumps(tracker.snapshot())), HeartbeatOffset("e"), next_batch=201)
    assert again._lateness.run_ms() == tracker._lateness.run_ms()


def test_without_arrivals_rows_are_as_late_as_their_micro_batch() -> None:
    tracker = CompletenessTracker(spec(), "q", "e")
    outcome = tracker.on_batch(report(0, [-2_000.0] * 9 + [-9_000.0]))
    assert outcome is not None and outcome.recent_lateness_ms is not None
    assert outcome.recent_lateness_ms[0] == pytest.approx(2_000.0, rel=0.05)
    assert outcome.recent_lateness_ms[3] == pytest.approx(9_000.0, rel=0.05)
    assert outcome.span_ms is None


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 50)), min_size=1, max_size=30))
def test_the_lateness_of_the_last_minutes_forgets_the_rest(batches: list[tuple[int, int]]) -> None:
    history, ordered = LatenessHistory(), sorted(batches)
    for at_ms, cell in ordered:
        history.add_cells(float(at_ms), [(cell, 1)])
    kept = LatenessHistory()
    for at_ms, cell in ordered:
        if at_ms >= ordered[-1][0] - 300_000:
            kept.add_cells(0.0, [(cell, 1)])
    assert history.recent_ms() == kept.run_ms()
