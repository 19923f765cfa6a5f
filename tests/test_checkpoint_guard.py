"""The description of the query in a checkpoint, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.control.policy import Policy
from slackwater.errors import PromiseConflict
from slackwater.language import parse
from slackwater.plan import make_plan
from slackwater.spark.windows.checkpoint_guard import state_identity
from slackwater.spark.worker.heartbeat_source import HeartbeatReader
from slackwater.spark.worker.mailbox import Mailbox

QUERY = "SELECT sensor, COUNT(*) AS n FROM Sensors [RANGE 6 seconds WATTR ts DRATIO 1%] GROUP BY sensor"


def reader(folder: Path, text: str) -> HeartbeatReader:
    return HeartbeatReader(str(folder), ["ts"], "ts", state_identity(make_plan(parse(text))))


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("6 seconds", "7 seconds", r"the window \[RANGE 6 seconds WATTR ts\], and this one has the window \[RANGE 7 "),
        ("6 seconds", "6 seconds SLIDE 2 seconds", r"this one has the window \[RANGE 6 seconds SLIDE 2 seconds WATTR"),
        ("WATTR ts", "WATTR arrived", r"this one has the window \[RANGE 6 seconds WATTR arrived\]"),
        ("COUNT(*)", "SUM(value)", r"the aggregates COUNT\(\*\), and this one has the aggregates SUM\(value\)"),
        ("BY sensor", "BY sensor, id", r"GROUP BY sensor, and this one has GROUP BY sensor, id"),
    ],
)
def test_another_query_is_refused(written: str, instead: str, message: str, tmp_path: Path) -> None:
    start = reader(tmp_path, QUERY).initialOffset()
    other = reader(tmp_path, QUERY.replace(written, instead))
    for resume in (lambda: other.read(start), lambda: other.readBetweenOffsets(start, start)):
        with pytest.raises(PromiseConflict, match=rf"\[other-query\] .*{message}.*; start it as it was, or with a"):
            resume()


@pytest.mark.parametrize(
    ("written", "instead"),
    [("1%", "5%"), ("] GROUP", "] WHERE value > 3 GROUP"), ("AS n", "AS m"), ("1%", "1% LATE ROWS")],
)
def test_what_is_not_in_the_state_may_change(written: str, instead: str, tmp_path: Path) -> None:
    start = reader(tmp_path, QUERY).initialOffset()
    assert reader(tmp_path, QUERY.replace(written, instead)).read(start)[1] == start


def test_a_checkpoint_that_does_not_say_is_taken(tmp_path: Path) -> None:
    start = {"epoch": "e", "heartbeat": None}
    offers = Mailbox(tmp_path)
    mine = reader(tmp_path, QUERY)
    policy = Policy(clock=9.0, wall=0.0, heartbeat=7.0)
    offers.publish("e", policy, False, {"batch": 3, "ledger": {}})
    assert mine.read(start)[1]["state"] == state_identity(make_plan(parse(QUERY)))
