"""The control lines of a promise's queries: one file per query, so that each is judged by its own heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.control_line import ControlLine


@dataclass(frozen=True, slots=True)
class ControlFiles:
    """The heartbeat reader of a query writes its control line here, under the query's epoch, before Spark plans."""

    folder: Path

    def write(self, epoch: str, line: ControlLine) -> None:
        """Put a line in force."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(epoch)
        if not path.exists() or path.read_text(errors="replace") != line.text():
            replace(path, line.text())

    def read(self, epoch: str) -> ControlLine | None:
        """The line of an epoch; None if no reader has written one here, or if it is damaged."""
        try:
            text = self._path(epoch).read_text(errors="replace")
            return ControlLine.parse(text) if len(text) == len(ControlLine().text()) else None
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def has(self, epoch: str) -> bool:
        """Whether the query of that epoch runs under this promise."""
        return self._path(epoch).exists()

    def line_of(self, epoch: str, heartbeat_ms: int | None) -> ControlLine:
        """The line that judges a micro-batch which begins with this heartbeat.

        Spark does not call the reader before it repeats a micro-batch: then the line is missing or of another one.
        """
        judged = ControlLine.for_batch(heartbeat_ms)
        line = self.read(epoch)
        return line if line is not None and line.heartbeat_us == judged.heartbeat_us else judged

    def _path(self, epoch: str) -> Path:
        return self.folder / f"control-{epoch}.txt"
