"""The files through which the driver, the heartbeat reader and the micro-batches exchange control values.

The driver decides. The heartbeat reader is a separate process beside it, one per query. They share a file system and
nothing else, so every file is replaced atomically. No two queries write the same file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater.control.policy import Policy
from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset

BELOW_ALL_CELLS = -99_999
"""A threshold of utility that every row is above."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The policy of one query, None before its first rows, and its state for Spark's checkpoint."""

    epoch: str
    policy: Policy | None
    sample_cells: bool
    state: dict[str, Any]

    def heartbeat_at(self, now_ms: float) -> HeartbeatOffset | None:
        """The heartbeat for a micro-batch that is planned at ``now_ms``; None without a policy."""
        if self.policy is None:
            return None
        heartbeat = self.policy.heartbeat_at(now_ms)
        return HeartbeatOffset.from_json(
            {
                "epoch": self.epoch,
                "heartbeat": math.floor(heartbeat) if math.isfinite(heartbeat) else None,
                "clock": math.floor(self.policy.clock_at(now_ms)),
                "decided": math.floor(self.policy.clock),
                "sample": self.sample_cells,
                **self.state,
            }
        )


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The folder of one promise."""

    folder: Path

    @property
    def control(self) -> ControlFiles:
        """The control lines of the promise's queries."""
        return ControlFiles(self.folder)

    @property
    def shed_path(self) -> Path:
        """The control row of a timeliness promise: shed ratio, threshold cell, shares kept in it and below it."""
        return self.folder / "shed.txt"

    @property
    def target_path(self) -> Path:
        """The target of a timeliness promise, if it is not the one in the query; an operator may edit it."""
        return self.folder / "target.txt"

    def write_shed_ratio(
        self, ratio: float, cell: int = BELOW_ALL_CELLS, keep_ratio: float = 1.0, least_ratio: float = 1.0
    ) -> None:
        """Put a shed ratio and a threshold of utility into the control row, unless they are there already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = f"{ratio:.6f} {cell:+06d} {keep_ratio:.9f} {least_ratio:.9f}\n"
        if not self.shed_path.exists() or self.shed_path.read_text() != line:
            replace(self.shed_path, line)

    def has_shed_row(self) -> bool:
        """Whether there is a control row with all its numbers."""
        return self.shed_path.exists() and len(self.shed_path.read_text().split()) == 4

    def write_target(self, max_delay_s: float | None) -> None:
        """Change the target of a timeliness promise; None returns to the one in the query."""
        if max_delay_s is None:
            self.target_path.unlink(missing_ok=True)
        else:
            replace(self.target_path, f"{max_delay_s!r} seconds\n")

    def read_target(self) -> str | None:
        """The text that ``write_target`` or an operator wrote; None if there is none."""
        try:
            return self.target_path.read_text(errors="replace").strip()
        except FileNotFoundError:
            return None

    def publish(self, epoch: str, policy: Policy | None, sample_cells: bool, state: dict[str, Any]) -> None:
        """Offer a policy to the heartbeat reader of one query, with the query's checkpoint state."""
        offer = {"policy": None if policy is None else policy.as_json(), "sample": sample_cells, "state": state}
        replace(self._offer_path(epoch), json.dumps(offer))

    def read_offer(self, epoch: str) -> Offer | None:
        """What ``publish`` offered the query last; None if nothing was."""
        try:
            offer = json.loads(self._offer_path(epoch).read_text())
        except FileNotFoundError:
            return None
        policy = None if offer["policy"] is None else Policy.from_json(offer["policy"])
        return Offer(epoch, policy, offer["sample"], offer["state"])

    def write_snapshot(self, query_id: str, snapshot: dict[str, Any]) -> None:
        """Keep what the controller of one query has learned."""
        replace(self._snapshot_path(query_id), json.dumps(snapshot))

    def read_snapshot(self, query_id: str) -> dict[str, Any] | None:
        """What ``write_snapshot`` kept; None if it is missing or damaged."""
        try:
            snapshot = json.loads(self._snapshot_path(query_id).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return snapshot if isinstance(snapshot, dict) else None

    def _snapshot_path(self, query_id: str) -> Path:
        return self.folder / f"snapshot-{query_id}.json"

    def _offer_path(self, epoch: str) -> Path:
        return self.folder / f"heartbeat-{epoch}.json"
