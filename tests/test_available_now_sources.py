"""The sources of Slackwater in a run of ``Trigger.AvailableNow``: they wait for reports, and come to an end. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.spark.worker import available_now
from slackwater.spark.worker.available_now import ReportWait
from slackwater.spark.worker.clock_source import ClockReader
from slackwater.spark.worker.mailbox import Mailbox


class Listener:
    """Publishes the next of ``reports`` whenever the reader sleeps; every sleep takes a second of its clock."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.reports: list[int] = []
        self.slept = 0

    def sleep(self, _seconds: float) -> None:
        self.slept += 1
        if self.reports:
            self.mailbox.publish("mine", None, False, {"batch": self.reports.pop(0)})

    def monotonic(self) -> float:
        return float(self.slept)


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Listener:
    made = Listener(Mailbox(tmp_path))
    monkeypatch.setattr(available_now, "time", made)
    return made


def test_each_read_waits_for_the_report_of_the_micro_batch_before_it(listener: Listener) -> None:
    wait = ReportWait(listener.mailbox)
    assert wait.newest_offer("mine") is None
    assert listener.slept == 0, "before the first micro-batch there is nothing to wait for"
    for batch in range(3):
        listener.reports = [batch - 1, batch]  # the first one says nothing new
        offer = wait.newest_offer("mine")
        assert offer is not None and offer.state["batch"] == batch
    assert listener.slept == 6


def test_a_run_that_goes_on_waits_for_its_own_reports(listener: Listener) -> None:
    listener.mailbox.publish("mine", None, False, {"batch": 7})
    listener.mailbox.publish("other", None, False, {"batch": 99})
    wait = ReportWait(listener.mailbox)
    wait.newest_offer("mine")
    listener.reports = [12]  # batches 8 to 11 were committed and not reported before a crash
    wait.newest_offer("mine")
    listener.reports = [13]
    wait.newest_offer("mine")
    assert listener.slept == 2


def test_a_report_that_stays_out_is_waited_for_once(listener: Listener) -> None:
    wait = ReportWait(listener.mailbox)
    wait.newest_offer("mine")
    wait.newest_offer("mine")
    longest = listener.slept
    assert longest > 0
    wait.newest_offer("mine")
    assert listener.slept == longest, "without reports the run is not slowed down further"
    listener.mailbox.publish("mine", None, False, {"batch": 1})
    listener.reports = [2]
    wait.newest_offer("mine")
    assert listener.slept == longest + 1, "once they come again, each read waits for the newest"


def test_the_clock_stands_still_for_a_run(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("5000")
    reader = ClockReader(1000.0, str(file))
    reader.prepareForTriggerAvailableNow()
    file.write_text("9000")
    ticks, end = reader.read(reader.initialOffset())
    assert (list(ticks), end) == ([(5000,)], {"clock_ms": 5000})
    assert list(reader.read(end)[0]) == [] and reader.read(end)[1] == end
