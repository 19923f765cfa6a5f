"""Two promised streams in one query keep both targets, whichever of them the load comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.control.choice import Law
from slackwater.control.shedding.microbatch import MicroBatch
from slackwater.promises import Timeliness
from slackwater.spark.timeliness.tracker import TimelinessSpec, TimelinessTracker, decide_together
from slackwater.spark.worker.mailbox import Mailbox

FIXED_S = 0.3
ROW_S = 1e-3
TARGETS_S = (3.0, 8.0)


def trackers(folder: Path, apart: bool = False) -> list[TimelinessTracker]:
    mailbox = Mailbox(folder)
    specs = [TimelinessSpec(f"s{target_s}", Timeliness(target_s), Law("ctrl-batch"), mailbox) for target_s in TARGETS_S]
    first, second = (TimelinessTracker(spec, "query") for spec in specs)
    if not apart:
        second.share_with([first])
    return [first, second]


def replay(streams: list[TimelinessTracker], loads_per_s: tuple[float, ...]) -> tuple[list[float], float]:
    """Micro-batches back to back; returns the shed ratio of each stream at the end, and the mean delay."""
    at_s, duration_s, delays = 0.0, 0.5, []
    for number in range(80):
        rows = [round(load * duration_s) for load in loads_per_s]
        kept = [round(n * (1.0 - one.controller.shed_ratio)) for n, one in zip(rows, streams, strict=True)]
        at_s, width_s, duration_s = at_s + duration_s, duration_s, FIXED_S + ROW_S * sum(kept)
        parts = [MicroBatch(at_s, duration_s, n, left, at_s - width_s / 2) for n, left in zip(rows, kept, strict=True)]
        together = streams[0].controller is streams[1].controller
        for group in ([0, 1],) if together else ([0], [1]):
            decisions = decide_together([streams[i] for i in group], [parts[i] for i in group])
            for i, decision in zip(group, decisions, strict=True):
                streams[i].on_batch(number, parts[i], streams[i].controller.shed_ratio, decision)
        delays.append(width_s / 2 + duration_s)
    return [one.controller.shed_ratio for one in streams], sum(delays[40:]) / 40


@pytest.mark.parametrize("loads_per_s", [(1500.0, 500.0), (1000.0, 1000.0), (300.0, 2500.0), (2500.0, 10.0)])
def test_both_targets_are_kept_and_both_streams_shed_alike(tmp_path: Path, loads_per_s: tuple[float, ...]) -> None:
    streams = trackers(tmp_path)
    ratios, delay_s = replay(streams, loads_per_s)
    assert delay_s <= TARGETS_S[0]
    assert ratios[0] == ratios[1] == pytest.approx(1.0 - (1.0 - FIXED_S / 1.84) / (ROW_S * sum(loads_per_s)), abs=0.03)
    for one, load_per_s in zip(streams, loads_per_s, strict=True):
        assert one.latest is not None and one.latest.decision.load_per_s == pytest.approx(load_per_s, rel=0.1)
        assert one.mean_delay_s is not None and one.mean_delay_s <= one.target.max_delay_s


def test_controlled_apart_the_shorter_target_breaks(tmp_path: Path) -> None:
    ratios, delay_s = replay(trackers(tmp_path, apart=True), (300.0, 2500.0))
    assert delay_s > TARGETS_S[0] and ratios[0] > 0.9, "the cost of the other stream alone exceeds the target"


def test_a_changed_target_of_one_stream_changes_the_common_decision(tmp_path: Path) -> None:
    streams = trackers(tmp_path)
    before, _ = replay(streams, (1000.0, 1000.0))
    streams = trackers(tmp_path)
    assert streams[0].retarget("6 seconds") is None
    after, delay_s = replay(streams, (1000.0, 1000.0))
    assert TARGETS_S[0] < delay_s <= 6.0 and after[1] < before[1]
