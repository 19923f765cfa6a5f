"""The files through which driver, heartbeat reader and micro-batches meet, each replaced atomically.

The driver decides; the heartbeat reader is another process beside it; the control row is read by whatever executor
gets the task. A shared file system is all that they have in common.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackwater.spark.worker.sampling import sampling_start_us

UNKNOWN_US = -9_000_000_000_000_000_000
"""In the control row: no heartbeat yet."""
_NEVER_US = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The folder of one promise."""

    folder: Path

    @property
    def control_path(self) -> Path:
        """The control row: the heartbeat that judges the next micro-batch, what places its rows, where thinning begins.

        One line of constant length, since Spark re-reads the file but not its length. Only the heartbeat reader
        writes it, when a micro-batch is put together.
        """
        return self.folder / "control.txt"

    @property
    def shed_path(self) -> Path:
        """The control row of a timeliness promise: the share of rows to leave out, one line of constant length."""
        return self.folder / "shed.txt"

    def write_shed_ratio(self, ratio: float) -> None:
        """Put a shed ratio into the control row, unless it is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = f"{ratio:.6f}\n"
        if not self.shed_path.exists() or self.shed_path.read_text() != line:
            replace(self.shed_path, line)

    @property
    def heartbeat_path(self) -> Path:
        """What the heartbeat reader publishes next."""
        return self.folder / "heartbeat.json"

    def snapshot_path(self, query_id: str) -> Path:
        """What the controller of one query had learned when its last micro-batch was reported."""
        return self.folder / f"snapshot-{query_id}.json"

    def write_control(self, heartbeat_ms: int | None, clock_ms: int | None = None, sample_cells: bool = False) -> None:
        """Put a heartbeat into the control row; None means that nothing is late yet.

        Rows are placed by their distance from the heartbeat, or from the clock as last heard while there is none. With
        ``thin`` not all of the far ones are counted by their cells.
        """
        reference_ms = clock_ms if heartbeat_ms is None else heartbeat_ms
        heartbeat_us = None if heartbeat_ms is None else heartbeat_ms * 1000
        sample_from_us = sampling_start_us(heartbeat_us) if sample_cells else _NEVER_US
        numbers = (_control_us(heartbeat_ms), _control_us(reference_ms), sample_from_us)
        replace(self.control_path, " ".join(f"{number:+020d}" for number in numbers) + "\n")

    def read_control(self) -> tuple[int | None, bool]:
        """The heartbeat in the control row, in milliseconds, and whether micro-batches are thinned."""
        heartbeat, _, thin_from = map(int, self.control_path.read_text().split())
        return None if heartbeat <= UNKNOWN_US else heartbeat // 1000, thin_from < _NEVER_US

    def publish(
        self, heartbeat_ms: int | None, clock_ms: int, sample_cells: bool, queries: dict[str, dict[str, Any]]
    ) -> None:
        """Offer a heartbeat to the readers of these queries (by epoch), each with what must survive beside it."""
        offer = {"heartbeat": heartbeat_ms, "clock": clock_ms, "thin": sample_cells, "queries": queries}
        replace(self.heartbeat_path, json.dumps(offer))

    def offer_for(self, epoch: str) -> dict[str, Any] | None:
        """The heartbeat offered to one query and what must survive with it, or None."""
        try:
            offer = json.loads(self.heartbeat_path.read_text())
        except FileNotFoundError:
            return None
        mine = offer["queries"].get(epoch)
        return None if mine is None else {key: offer[key] for key in ("heartbeat", "clock", "thin")} | mine

    def announce(self, epoch: str) -> None:
        """Say, as its reader, that the query of that epoch runs under this promise."""
        (self.folder / f"epoch-{epoch}").touch()

    def was_announced(self, epoch: str) -> bool:
        """Whether a reader has said so."""
        return (self.folder / f"epoch-{epoch}").exists()

    def declare_live(self, epochs: list[str]) -> None:
        """Say which queries are running on this promise; written before another one starts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self._live_path, json.dumps(epochs))
        if not self.control_path.exists():
            self.write_control(None)

    def start_afresh(self) -> None:
        """A query starts from nothing: forget the heartbeat, unless another query is running under it."""
        if not json.loads(self._live_path.read_text()):
            self.write_control(None)
            self.heartbeat_path.unlink(missing_ok=True)

    @property
    def _live_path(self) -> Path:
        return self.folder / "live.json"


def _control_us(ms: int | None) -> int:
    return UNKNOWN_US if ms is None else ms * 1000


def replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, also if the power fails in between."""
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
