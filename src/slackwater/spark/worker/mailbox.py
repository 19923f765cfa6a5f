"""The files through which the driver, the heartbeat reader and the micro-batches exchange control values.

The driver decides. The heartbeat reader is a separate process beside it. Any executor may read the control row. They
share a file system and nothing else, so every file is replaced atomically.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater.control.policy import Policy
from slackwater.spark.worker.control_line import NEVER_US, UNKNOWN_US, ControlLine
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.sampling import sampling_start_us
from slackwater.units import MS_US

BELOW_ALL_CELLS = -99_999
"""A threshold of utility that every row is above."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The policies of the queries under one promise, by epoch, and the checkpoint state of each query."""

    policies: dict[str, Policy]
    sample_cells: bool
    queries: dict[str, dict[str, Any]]

    def heartbeat_for(self, epoch: str, now_ms: float) -> HeartbeatOffset | None:
        """The heartbeat of one query for a micro-batch that is planned at ``now_ms``; None without a policy for it.

        Queries that share a promise share the lowest of their heartbeats. None of them has one before all do.
        """
        if epoch not in self.policies:
            return None
        lowest = -math.inf
        if len(self.policies) == len(self.queries):
            lowest = min(policy.heartbeat_at(now_ms) for policy in self.policies.values())
        return HeartbeatOffset.from_json(
            {
                "epoch": epoch,
                "heartbeat": math.floor(lowest) if math.isfinite(lowest) else None,
                "clock": math.floor(self.policies[epoch].clock_at(now_ms)),
                "decided": math.floor(self.policies[epoch].clock),
                "sample": self.sample_cells,
                **self.queries[epoch],
            }
        )


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The folder of one promise."""

    folder: Path

    @property
    def control_path(self) -> Path:
        """The control row of a completeness promise. The heartbeat reader writes it when Spark plans a micro-batch."""
        return self.folder / "control.txt"

    @property
    def shed_path(self) -> Path:
        """The control row of a timeliness promise: shed ratio, threshold cell, shares kept in it and below it."""
        return self.folder / "shed.txt"

    @property
    def target_path(self) -> Path:
        """The target of a timeliness promise, if it is not the one in the query; an operator may edit it."""
        return self.folder / "target.txt"

    @property
    def heartbeat_path(self) -> Path:
        """The policies that the driver offers to the heartbeat reader."""
        return self.folder / "heartbeat.json"

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

    def write_control(
        self,
        heartbeat_ms: int | None,
        clock_ms: int | None = None,
        sample_cells: bool = False,
        chosen_at_ms: int | None = None,
        decided_at_ms: int | None = None,
    ) -> None:
        """Put a heartbeat into the control row, unless it is there already; without one no row is late.

        The histogram's reference is the heartbeat, or ``clock_ms`` while there is none. ``chosen_at_ms`` is the arrival
        clock at which the heartbeat was chosen, ``decided_at_ms`` that of the decision.
        """
        reference_ms = clock_ms if heartbeat_ms is None else heartbeat_ms
        heartbeat_us = None if heartbeat_ms is None else heartbeat_ms * MS_US
        line = ControlLine(
            UNKNOWN_US if heartbeat_us is None else heartbeat_us,
            UNKNOWN_US if reference_ms is None else reference_ms * MS_US,
            sampling_start_us(heartbeat_us) if sample_cells else NEVER_US,
            UNKNOWN_US if chosen_at_ms is None else chosen_at_ms * MS_US,
            UNKNOWN_US if decided_at_ms is None else decided_at_ms * MS_US,
        )
        if not self.control_path.exists() or self.control_path.read_text() != line.text():
            replace(self.control_path, line.text())

    def read_control(self) -> ControlLine:
        """The control row."""
        return ControlLine.parse(self.control_path.read_text())

    def publish(self, policies: dict[str, Policy], sample_cells: bool, queries: dict[str, dict[str, Any]]) -> None:
        """Offer policies to the readers of these queries (by epoch), each with its checkpoint state."""
        offer = {
            "policies": {epoch: policy.as_json() for epoch, policy in policies.items()},
            "sample": sample_cells,
            "queries": queries,
        }
        replace(self.heartbeat_path, json.dumps(offer))

    def read_offer(self) -> Offer | None:
        """What ``publish`` offered last; None if nothing was."""
        try:
            offer = json.loads(self.heartbeat_path.read_text())
        except FileNotFoundError:
            return None
        if "policies" not in offer:  # written by version 0.1
            return None
        policies = {epoch: Policy.from_json(policy) for epoch, policy in offer["policies"].items()}
        return Offer(policies, offer["sample"], offer["queries"])

    def announce(self, epoch: str) -> None:
        """As the heartbeat reader: note that the query of that epoch runs under this promise."""
        (self.folder / f"epoch-{epoch}").touch()

    def was_announced(self, epoch: str) -> bool:
        """Whether a reader has announced that epoch."""
        return (self.folder / f"epoch-{epoch}").exists()

    def declare_live(self, epochs: list[str]) -> None:
        """List the queries that are running under this promise; written before another one starts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self._live_path, json.dumps(epochs))
        if not self.control_path.exists() or len(self.control_path.read_text()) != len(ControlLine().text()):
            self.write_control(None)

    def reset_unless_live(self) -> bool:
        """A query starts from nothing: forget the heartbeat, unless another query is running under it."""
        if json.loads(self._live_path.read_text()):
            return False
        self.write_control(None)
        self.heartbeat_path.unlink(missing_ok=True)
        return True

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

    @property
    def _live_path(self) -> Path:
        return self.folder / "live.json"


def replace(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the old text or the new one, even after a power failure."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)  # executors may run as another user
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
