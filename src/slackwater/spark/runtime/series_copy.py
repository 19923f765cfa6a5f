"""Copies of a series in a storage that is not on this machine."""

from __future__ import annotations

import math
import time
from pathlib import Path

from slackwater.spark.worker.mailbox import Mailbox
from slackwater.watching.series import Series
from slackwater.watching.series_file import snapshot_line

_EVERY_S = 10.0


class SeriesCopy:
    """Keeps a series in the promise's storage, if that is elsewhere, for the next driver.

    A crash loses at most the points of ten seconds. The page and the metrics read the file on this machine.
    """

    def __init__(self, mailbox: Mailbox, path: Path) -> None:
        self._storage = mailbox.storage if mailbox.storage.local_folder is None else None
        self._path = path
        self._copied_s = -math.inf

    def fetch(self) -> None:
        """Write the copy of an earlier driver to this machine, unless the series is here already."""
        if self._storage is None or self._path.exists():
            return
        text = self._storage.read(self._path.name)
        if text is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text, encoding="utf-8")

    def copy_if_due(self, series: Series) -> None:
        """Copy the series if the last copy is some seconds old."""
        if self._storage is not None and time.monotonic() >= self._copied_s + _EVERY_S:
            self.copy(series)

    def copy(self, series: Series) -> None:
        """Copy the series now."""
        if self._storage is not None:
            self._copied_s = time.monotonic()
            self._storage.write(self._path.name, snapshot_line(series))
