"""What a source needs for ``Trigger.AvailableNow``: Spark's interface, and a wait for the listener's reports."""

from __future__ import annotations

import time

from slackwater.spark.worker.mailbox import Mailbox, Offer

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2, which runs such a query as one micro-batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Has no meaning before Spark 4.2."""


__all__ = ["ReportWait", "SupportsTriggerAvailableNow"]

_LONGEST_S = 10.0
_POLL_S = 0.002


class ReportWait:
    """Holds the planning of a micro-batch back until the one before it was reported, for ten seconds at most.

    The micro-batches of a run follow each other at once, and a decision is published by a listener some milliseconds
    after its micro-batch. Without the wait the heartbeat would be one micro-batch older throughout the run. The run
    would end before the decision from its last rows, so windows that they close would stay open until the next run.

    Spark gives a source no batch number. But between two reads of a run there is exactly one micro-batch, so each read
    waits for a higher number than the one before. If a report stays out, the next reads do not wait until one comes.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._awaited: int | None = None
        self._reported = -1
        self._missed = False

    def newest_offer(self, epoch: str) -> Offer | None:
        """The offer after the report of the micro-batch that has just ended; the first call of a run does not wait."""
        offer = self._mailbox.read_offer(epoch)
        if self._awaited is not None:
            self._awaited += 1
            until_s = time.monotonic() + _LONGEST_S
            while not self._has_come(offer) and time.monotonic() < until_s:
                time.sleep(_POLL_S)
                offer = self._mailbox.read_offer(epoch)
        batch = _batch(offer)
        self._missed = self._awaited is not None and batch < self._awaited
        self._awaited = batch if self._awaited is None else max(batch, self._awaited)
        self._reported = batch
        return offer

    def _has_come(self, offer: Offer | None) -> bool:
        assert self._awaited is not None
        batch = _batch(offer)
        return batch >= self._awaited or (self._missed and batch == self._reported)


def _batch(offer: Offer | None) -> int:
    """The last micro-batch of the query that the offer knows; -1 if it knows none."""
    return -1 if offer is None else int(offer.state["batch"])
