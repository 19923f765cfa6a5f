"""The offers of a promise's queries, fresh: after the report of the micro-batch that has just ended."""

from __future__ import annotations

import time

from slackwater.spark.worker.mailbox import Mailbox, Offer

LONGEST_WAIT_S = 0.1
_POLL_S = 0.001


class FreshOffers:
    """Waits for a report while Spark plans the next micro-batch, a tenth of a second at most.

    A listener reports a micro-batch some milliseconds after its commit, and back to back the next one is planned by
    then. After a report that stayed out, nothing is waited for until another one has come.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._missed_after: dict[str, int] = {}

    def after(self, epoch: str, batch: int) -> Offer | None:
        """The offer made from the report of a micro-batch, or the newest one if that stays out."""
        offer = self._mailbox.read_offer(epoch)
        until_s = time.monotonic() + LONGEST_WAIT_S
        while _batch(offer) < batch and self._missed_after.get(epoch) != _batch(offer) and time.monotonic() < until_s:
            time.sleep(_POLL_S)
            offer = self._mailbox.read_offer(epoch)
        if _batch(offer) < batch:
            self._missed_after[epoch] = _batch(offer)
        return offer


def _batch(offer: Offer | None) -> int:
    """The last micro-batch that the offer knows; -1 if it knows none."""
    return -1 if offer is None else int(offer.state["batch"])
