"""The offset of the heartbeat source: the heartbeat, and what Spark's checkpoint must keep beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HeartbeatOffset:
    """Where a query's heartbeat stream stands.

    ``epoch`` identifies the query across restarts. ``batch`` and ``ledger`` are those of the last micro-batch that the
    heartbeat was decided from. ``clock_ms`` is the arrival clock at which it was chosen, ``decided_at_ms`` that of the
    decision. ``state`` describes what the query's state is made of. ``sample_cells`` asks for a
    sampled histogram. ``promise`` is the name of the promise; offsets of earlier versions have none.
    """

    epoch: str
    heartbeat_ms: int | None = None
    clock_ms: int | None = None
    decided_at_ms: int | None = None
    sample_cells: bool = False
    batch: int = -1
    ledger: dict[str, int] | None = None
    state: dict[str, str] = field(default_factory=dict)
    promise: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The offset as Spark stores it."""
        return {
            "epoch": self.epoch,
            "heartbeat": self.heartbeat_ms,
            "clock": self.clock_ms,
            "decided": self.decided_at_ms,
            "sample": self.sample_cells,
            "batch": self.batch,
            "ledger": self.ledger,
            "state": self.state,
            "promise": self.promise,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> HeartbeatOffset:
        """The inverse of ``as_json``; raises ``KeyError`` for the offset of another source."""
        return cls(
            values["epoch"],
            values["heartbeat"],
            values.get("clock"),
            values.get("decided"),
            bool(values.get("sample")),
            int(values.get("batch", -1)),
            values.get("ledger"),
            values.get("state") or {},
            values.get("promise"),
        )

    def rises_above(self, start: HeartbeatOffset) -> bool:
        """Whether the heartbeat is higher than at ``start``."""
        if self.heartbeat_ms is None:
            return False
        return start.heartbeat_ms is None or self.heartbeat_ms > start.heartbeat_ms
