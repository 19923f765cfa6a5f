"""The driver waits for the report of the micro-batch that has just ended, and not for ever. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.spark.completeness import fresh_offers
from slackwater.spark.completeness.fresh_offers import LONGEST_WAIT_S, FreshOffers
from slackwater.spark.worker.mailbox import Mailbox


class Listener:
    """Publishes the next of ``reports`` whenever the driver sleeps; every sleep takes 10 ms of its clock."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.reports: list[int] = []
        self.slept = 0

    def sleep(self, _seconds: float) -> None:
        self.slept += 1
        if self.reports:
            self.mailbox.publish("mine", None, False, {"batch": self.reports.pop(0)})

    def monotonic(self) -> float:
        return self.slept / 100


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Listener:
    made = Listener(Mailbox(tmp_path))
    monkeypatch.setattr(fresh_offers, "time", made)
    return made


def test_a_report_is_waited_for(listener: Listener) -> None:
    listener.mailbox.publish("other", None, False, {"batch": 99})
    offers = FreshOffers(listener.mailbox)
    listener.reports = [6, 7]
    offer = offers.after("mine", 7)
    assert offer is not None and offer.state["batch"] == 7
    assert listener.slept == 2
    offers.after("mine", 7)
    assert listener.slept == 2, "a report that is there is not waited for"


def test_a_report_that_stays_out_is_waited_for_once(listener: Listener) -> None:
    offers = FreshOffers(listener.mailbox)
    listener.reports = [4]
    offer = offers.after("mine", 7)
    assert offer is not None and offer.state["batch"] == 4, "the newest one"
    assert listener.slept == pytest.approx(100 * LONGEST_WAIT_S, abs=1)
    before = listener.slept
    offers.after("mine", 8)
    assert listener.slept == before, "without reports the query is not slowed down further"
    listener.mailbox.publish("mine", None, False, {"batch": 8})
    listener.reports = [9]
    offer = offers.after("mine", 9)
    assert offer is not None and offer.state["batch"] == 9, "once they come again, the newest is waited for"
