"""The files through which the driver and the heartbeat reader exchange control values, and the storage beside them.

The driver decides. The heartbeat reader is a separate process on the same machine, one per query. They share a folder
and nothing else, so every file is replaced atomically. No two queries write the same file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater.control.policy import Policy
from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.checked_json import checked_json, read_checked_json
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.storage import LocalStorage, Storage

BELOW_ALL_CELLS = -99_999
"""A threshold of utility that every row is above."""
ABOUT = "promise.json"
"""Says that a folder is that of a timeliness promise, for ``slackwater retarget``."""
TARGET = "target.txt"
"""The target of a timeliness promise, if it is not the one in the query; an operator may edit it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The policy of one query, None before its first rows, and its state for Spark's checkpoint."""

    epoch: str
    policy: Policy | None
    sample_cells: bool
    state: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The offer without the epoch."""
        policy = None if self.policy is None else self.policy.as_json()
        return {"policy": policy, "sample": self.sample_cells, "state": self.state}

    @classmethod
    def from_json(cls, epoch: str, values: dict[str, Any]) -> Offer:
        """The inverse of ``as_json``."""
        policy = None if values["policy"] is None else Policy.from_json(values["policy"])
        return cls(epoch, policy, values["sample"], values["state"])

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
    """The folder of one promise on the driver's machine, named after it, and where it keeps what must survive."""

    folder: Path
    kept_in: Storage | None = None

    @property
    def control(self) -> ControlFiles:
        """The control lines of the promise's queries."""
        return ControlFiles(self.folder)

    @property
    def promise(self) -> str:
        """The promise's name."""
        return self.folder.name

    @property
    def storage(self) -> Storage:
        """What must survive the driver; in the same folder if nothing else was chosen."""
        return self.kept_in or LocalStorage(self.folder)

    @property
    def series_folder(self) -> Path:
        """Where the series are on this machine. Those of a storage elsewhere are copied there now and then."""
        return self.storage.local_folder or self.folder

    @property
    def shed_path(self) -> Path:
        """The shed row of a timeliness promise: shed ratio, threshold cell, shares kept in it and below it."""
        return self.folder / "shed.txt"

    def write_shed_ratio(
        self, ratio: float, cell: int = BELOW_ALL_CELLS, keep_ratio: float = 1.0, least_ratio: float = 1.0
    ) -> None:
        """Put a shed ratio and a threshold of utility into the shed row."""
        self.write_shed_row(f"{ratio:.6f} {cell:+06d} {keep_ratio:.9f} {least_ratio:.9f}\n")

    def write_shed_row(self, row: str) -> None:
        """Put a shed row in force, unless it is already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.read_shed_row() != row:
            replace(self.shed_path, row)

    def read_shed_row(self) -> str | None:
        """The shed row in force; None if there is none with all its numbers."""
        try:
            row = self.shed_path.read_text(errors="replace")
            ratio, cell, keep_ratio, least_ratio = row.split()
            shares = float(ratio), float(keep_ratio), float(least_ratio)
            int(cell)
        except (FileNotFoundError, ValueError):
            return None
        return row if all(0.0 <= share <= 1.0 for share in shares) and shares[0] < 1.0 else None

    def write_target(self, max_delay_s: float | None) -> None:
        """Change the target of a timeliness promise; None returns to the one in the query."""
        self.storage.write_plain(TARGET, None if max_delay_s is None else f"{max_delay_s!r} seconds\n")

    def read_target(self) -> str | None:
        """The text that ``write_target`` or an operator wrote; None if there is none."""
        text = self.storage.read_plain(TARGET)
        return None if text is None else text.strip()

    def publish(self, epoch: str, policy: Policy | None, sample_cells: bool, state: dict[str, Any]) -> None:
        """Offer a policy to the heartbeat reader of one query, with the query's checkpoint state."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self._offer_path(epoch), checked_json(Offer(epoch, policy, sample_cells, state).as_json()))

    def read_offer(self, epoch: str) -> Offer | None:
        """What ``publish`` offered the query last; None if nothing was, or if it is damaged."""
        try:
            values = read_checked_json(self._offer_path(epoch).read_text(errors="replace"))
            return None if values is None else Offer.from_json(epoch, values)
        except (FileNotFoundError, KeyError, TypeError):
            return None

    def write_snapshot(self, query_id: str, snapshot: dict[str, Any]) -> None:
        """Keep what the controller of one query has learned."""
        self.storage.write(_snapshot_name(query_id), checked_json(snapshot))

    def read_snapshot(self, query_id: str) -> dict[str, Any] | None:
        """What ``write_snapshot`` kept; None if it is missing or damaged."""
        text = self.storage.read(_snapshot_name(query_id))
        snapshot = None if text is None else read_checked_json(text)
        return snapshot if snapshot is not None and isinstance(snapshot.get("batch"), int) else None

    def _offer_path(self, epoch: str) -> Path:
        return self.folder / f"heartbeat-{epoch}.json"


def _snapshot_name(query_id: str) -> str:
    return f"snapshot-{query_id}.json"
