"""The control lines of a promise's queries: one file per query, so that each is judged by its own heartbeat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.errors import PromiseConflict
from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.control_line import ControlLine

_NO_DRIVER = "-"


@dataclass(frozen=True, slots=True)
class ControlFiles:
    """The folder of one promise.

    The heartbeat reader of a query writes its control line under the query's epoch. The driver looks the line up under
    the query's id while Spark plans a micro-batch. Which epoch a query has is known from the report of its first
    micro-batch on, and is kept for restarts.
    """

    folder: Path

    def write(self, epoch: str, line: ControlLine, driver: str | None = None) -> None:
        """Put a line in force. ``driver`` is the one beside which the writing reader runs; None if elsewhere."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path, text = self._path(epoch), f"{line.text()}{driver or _NO_DRIVER} {os.getpid()}\n"
        if not path.exists() or path.read_text() != text:
            replace(path, text)

    def read(self, epoch: str) -> ControlLine | None:
        """The line of an epoch; None if no reader has written one here."""
        try:
            return ControlLine.parse(self._path(epoch).read_text().splitlines()[0])
        except FileNotFoundError:
            return None

    def has(self, epoch: str) -> bool:
        """Whether the query of that epoch runs under this promise."""
        return self._path(epoch).exists()

    def claim(self, query_id: str, epoch: str) -> None:
        """Note which epoch a query has."""
        if self.epoch_of(query_id) != epoch:
            replace(self._owner_path(query_id), epoch)

    def epoch_of(self, query_id: str) -> str | None:
        """The epoch of a query; None before the first report of a new one, and if the file is lost."""
        try:
            return self._owner_path(query_id).read_text()
        except FileNotFoundError:
            return None

    def line_of(self, query_id: str, driver: str, *, first_batch: bool = False) -> ControlLine:
        """What judges the micro-batch that this driver is planning for a query.

        The first micro-batch of a query has no heartbeat. A query that goes on without its files is the only one whose
        reader has written a heartbeat and that nobody has claimed. If that is not clear, it fails before it reads a
        row.
        """
        if first_batch:
            return ControlLine()
        epoch = self.epoch_of(query_id)
        if epoch is not None:
            return self.read(epoch) or ControlLine()
        unclaimed = {epoch: line for epoch, line in self._unclaimed(driver) if line != ControlLine()}
        if not unclaimed:
            return ControlLine()
        if len(unclaimed) > 1:
            raise PromiseConflict(
                "promise-shared",
                f"{len(unclaimed)} queries start at once, and the promise in {self.folder} has lost their files",
                "start one of them and wait for its first micro-batch, then start the next",
            )
        ((epoch, line),) = unclaimed.items()
        self.claim(query_id, epoch)
        return line

    def _unclaimed(self, driver: str) -> Iterator[tuple[str, ControlLine]]:
        """The lines of living readers beside this driver whose queries are not known yet."""
        claimed = {path.read_text() for path in self.folder.glob(_owner_name("*"))}
        for path in self.folder.glob(_control_name("*")):
            epoch = path.stem.removeprefix("control-")
            line, writer = path.read_text().splitlines()
            beside, process = writer.split()
            if epoch not in claimed and beside == driver and _lives(int(process)):
                yield epoch, ControlLine.parse(line)

    def _path(self, epoch: str) -> Path:
        return self.folder / _control_name(epoch)

    def _owner_path(self, query_id: str) -> Path:
        return self.folder / _owner_name(query_id)


def _control_name(epoch: str) -> str:
    return f"control-{epoch}.txt"


def _owner_name(query_id: str) -> str:
    return f"epoch-{query_id}.txt"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
