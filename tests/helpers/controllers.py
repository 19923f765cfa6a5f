"""A disorder method and a shedding law whose decisions a test can predict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from slackwater.control import disorder, shedding
from slackwater.control.disorder import UNKNOWN, Batch
from slackwater.control.shedding import Status
from slackwater.promises import Completeness


class Trailing:
    """A heartbeat that trails the highest value by ``wait_ms``: the shorter the wait, the more rows are late."""

    name: ClassVar[str] = "test-trailing"

    def __init__(self, promise: Completeness, wait_ms: float = 2000.0, slack_rows: int = 0) -> None:
        self._wait_ms = wait_ms
        self._front = UNKNOWN

    def observe(self, batch: Batch) -> None:
        if len(batch.values):
            self._front = max(self._front, float(batch.values.max()))

    def heartbeat(self, clock: float | None) -> float:
        return self._front - self._wait_ms

    def snapshot(self) -> dict[str, Any]:
        return {"front": self._front}

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._front = snapshot["front"]


class Scripted:
    """Sheds the given ratios, one per decision, and then keeps to the last one."""

    name: ClassVar[str] = "test-scripted"

    def __init__(self, ratios: tuple[float, ...]) -> None:
        self._ratios = ratios
        self._step = 0

    def admit_per_s(self, status: Status) -> float:
        ratio = self._ratios[min(self._step, len(self._ratios) - 1)]
        self._step += 1
        return status.arrived_per_s * (1 - ratio)

    def snapshot(self) -> dict[str, Any]:
        return {"step": self._step}

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._step = snapshot["step"]


@contextmanager
def registered() -> Iterator[None]:
    """Make ``test-trailing`` and ``test-scripted`` known by name for a while."""
    disorder.register(Trailing)
    shedding.register(Scripted)
    try:
        yield
    finally:
        disorder.registry._METHODS.unregister(Trailing.name)
        shedding.registry._LAWS.unregister(Scripted.name)
