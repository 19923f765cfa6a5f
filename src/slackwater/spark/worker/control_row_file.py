"""The control row as a file that every micro-batch reads, where the driver cannot be asked for it."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from slackwater.errors import PromiseConflict
from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.control_line import ControlLine

try:
    import fcntl
except ImportError:  # a system without file locks
    fcntl = None  # type: ignore[assignment]

_LONGEST_S = 5.0
_POLL_S = 0.05


class ControlRowFile:
    """The one control row of a promise. Its micro-batches cannot tell queries apart, so one query at a time may run.

    The heartbeat reader of a query holds a lock as long as its process lives.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "control.txt"
        self._lock_path = folder / "control.lock"
        self._lock: IO[str] | None = None

    def create(self) -> None:
        """Make sure that there is a row; one of another length is of an older version."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists() or len(self.path.read_text(errors="replace")) != len(ControlLine().text()):
            replace(self.path, ControlLine().text())

    def write(self, line: ControlLine) -> None:
        """Put a line in force; refuses if another query runs under the promise."""
        self._hold()
        if not self.path.exists() or self.path.read_text(errors="replace") != line.text():
            replace(self.path, line.text())

    def restore(self, line: ControlLine) -> None:
        """Put back the line of a query that starts again, unless another one is running."""
        if self._try_to_hold():
            replace(self.path, line.text())
            self._release()

    def _hold(self) -> None:
        """Take the lock; a query that has just been stopped may hold it for a moment."""
        until_s = time.monotonic() + _LONGEST_S
        while not self._try_to_hold():
            if time.monotonic() >= until_s:
                raise PromiseConflict(
                    "promise-shared",
                    f"another query is running under the promise in {self.path.parent}, "
                    "whose control row is a file that both would read",
                    "call with_drop_ratio (or sql) once for each query, or set spark.slackwater.controlRow=driver",
                )
            time.sleep(_POLL_S)

    def _try_to_hold(self) -> bool:
        if fcntl is None or self._lock is not None:
            return True
        lock = self._lock_path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        except OSError:  # a file system without locks
            lock.close()
            return True
        self._lock = lock
        return True

    def _release(self) -> None:
        if self._lock is not None:
            with suppress(OSError):
                self._lock.close()
            self._lock = None
