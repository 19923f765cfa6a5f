"""A cap on the reorder buffer, for ``SLACK`` together with ``DRATIO``. It wraps any method."""

from __future__ import annotations

from typing import Any, ClassVar

from slackwater.control.disorder.cause import METHOD, Cause, cause_of
from slackwater.control.disorder.protocol import Batch, DisorderMethod
from slackwater.control.disorder.support.top_rows import TopRows
from slackwater.errors import InvalidOption


class SlackCap:
    """Keeps at most ``slack_rows`` rows above the heartbeat, whatever the inner method proposes.

    SLACK wins over DRATIO (Kim 2007, §4): while the inner method proposes a larger buffer, the slack decides and the
    drop ratio has no effect. The promise breaks if the stream is more disordered than the slack allows. Costs a sort
    of ``slack_rows`` values per batch.

    >>> import numpy as np
    >>> from slackwater.control.disorder import make_method
    >>> from slackwater.promises import Completeness
    >>> method = make_method("max-delay", Completeness(0.01), slack_rows=2)
    >>> method.observe(Batch(np.array([1.0, 8.0, 9.0, 7.0]), np.full(4, 10.0), clock=10.0))
    >>> method.heartbeat(10.0)  # max-delay proposes 1; 9 and 8 fill the slack
    7.0
    """

    name: ClassVar[str] = "slack"

    def __init__(self, inner: DisorderMethod, slack_rows: int) -> None:
        if slack_rows < 1:
            raise InvalidOption("invalid-slack", f"slack_rows={slack_rows!r} is not positive", "give at least 1")
        self.inner = inner
        self._keep = int(slack_rows) + 1
        self._top = TopRows()
        self.cause = METHOD

    def observe(self, batch: Batch) -> None:
        if len(batch.values):
            self._top.add(batch.values, batch.weights, self._keep)
        self.inner.observe(batch)

    def heartbeat(self, clock: float | None) -> float:
        proposed, least = self.inner.heartbeat(clock), self._top.nth(self._keep)
        self.cause = Cause("slack") if least > proposed else cause_of(self.inner)
        return max(proposed, least)

    def snapshot(self) -> dict[str, Any]:
        return {"top": self._top.snapshot(), "method": self.inner.name, "learned": self.inner.snapshot()}

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._top.resume(snapshot["top"])
        if snapshot["method"] == self.inner.name:
            self.inner.resume(snapshot["learned"])
