"""A policy extrapolates the arrival clock only as far as the stream supports it."""

from __future__ import annotations

from pathlib import Path

from slackwater.control.policy import LiveClock, Policy
from slackwater.spark.worker.heartbeat_source import HeartbeatReader
from slackwater.spark.worker.mailbox import Mailbox


def live_clock(*steps: tuple[float, float], took: float = 0.0) -> LiveClock:
    clock = LiveClock()
    for at, wall in steps:
        clock.observe(at, wall, took)
    return clock


def test_clock_of_a_live_stream_runs_on() -> None:
    live = live_clock((1000.0, 1100.0), (2000.0, 2100.0), (3000.0, 3100.0))
    policy = Policy(clock=3000.0, wall=3100.0, heartbeat=2500.0, reach=live.reach)
    assert policy.clock_at(4100.0) == 4000.0
    assert policy.heartbeat_at(4100.0) == 3500.0


def test_clock_of_a_replay_does_not_run_on() -> None:
    assert live_clock((1000.0, 9_000_000.0), (2000.0, 9_000_100.0)).reach == 0.0


def test_clock_does_not_run_on_after_a_restart_or_a_stall() -> None:
    live = live_clock((1000.0, 1000.0), (2000.0, 2000.0))
    policy = Policy(clock=2000.0, wall=2000.0, heartbeat=1500.0, reach=live.reach)
    assert policy.heartbeat_at(60_000.0) == 1500.0


def test_clock_runs_on_through_batches_that_suddenly_take_longer() -> None:
    """Back to back, a decision is used when its own batch and the next one have ended."""
    step, slow = 1000.0, 2.0
    live = live_clock((1000.0, 1000.0), (2000.0, 2000.0), took=slow * step)
    policy = Policy(clock=2000.0, wall=2000.0, heartbeat=1500.0, reach=live.reach)
    assert policy.clock_at(policy.wall + 2 * slow * step) == policy.clock + 2 * slow * step


def test_policy_survives_json() -> None:
    for policy in (Policy(1.0, 2.0, 3.0, 4.0), Policy(1.0, 2.0, float("-inf"))):
        assert Policy.from_json(policy.as_json()) == policy


def test_policy_raises_the_heartbeat_once_so_that_an_idle_query_stays_idle(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    reader = HeartbeatReader(str(tmp_path), ["ts"], "ts", {})
    start = {**reader.initialOffset(), "epoch": "e"}
    mailbox.publish("e", Policy(9000.0, 0.0, 7000.0), False, {"batch": 3, "ledger": {}})
    rows, end = reader.read(start)
    assert len(list(rows)) == 1
    assert end["heartbeat"] == 7000
    rows, again = reader.read(end)
    assert list(rows) == []
    assert again == end


def test_micro_batch_is_told_the_clock_at_which_its_heartbeat_was_chosen(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    reader = HeartbeatReader(str(tmp_path), ["ts"], "ts", {})
    at = {**reader.initialOffset(), "epoch": "e"}
    for batch, policy in enumerate((Policy(9000.0, 0.0, 7000.0), Policy(9500.0, 0.0, 6000.0))):
        mailbox.publish("e", policy, False, {"batch": batch, "ledger": {}})
        _, at = reader.read(at)
    line = mailbox.control.read("e")
    assert line is not None and line.chosen_at_us == 9_000_000, "the first policy judges while the second one is read"
    reader.read(at)
    line = mailbox.control.read("e")
    assert line is not None and line.heartbeat_us == 7_000_000, (
        "the second policy proposes less, and the heartbeat does not retreat"
    )
    assert line.chosen_at_us == 9_500_000


def test_heartbeat_rises_with_the_clock_up_to_its_ceiling() -> None:
    policy = Policy(clock=2000.0, wall=2000.0, heartbeat=1500.0, reach=1000.0, ceiling=1700.0)
    assert [policy.heartbeat_at(at) for at in (2000.0, 2100.0, 2900.0, 9000.0)] == [1500.0, 1600.0, 1700.0, 1500.0]
    assert Policy.from_json(policy.as_json()) == policy
