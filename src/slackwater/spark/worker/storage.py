"""Where a promise keeps what must survive its driver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slackwater.spark.worker.atomic_files import replace


class Storage(Protocol):
    """A folder of small texts, on any file system.

    A text that is missing, damaged or of an earlier moment costs what was learned since, and never a row.
    """

    @property
    def uri(self) -> str:
        """The folder, for messages."""

    @property
    def local_folder(self) -> Path | None:
        """The folder on this machine's file systems; None if it is elsewhere."""

    def read(self, name: str) -> str | None:
        """The newest whole text that was written under a name; None if there is none or the folder cannot be read."""

    def write(self, name: str, text: str) -> None:
        """Keep a text under a name. A reader sees this text or an earlier one, never a part."""

    def read_plain(self, name: str) -> str | None:
        """A file that an operator may edit; None if there is none."""

    def write_plain(self, name: str, text: str | None) -> None:
        """Write such a file, or remove it."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder on a mounted file system."""

    folder: Path

    @property
    def uri(self) -> str:
        return str(self.folder)

    @property
    def local_folder(self) -> Path | None:
        return self.folder

    def read(self, name: str) -> str | None:
        try:
            return (self.folder / name).read_text(errors="replace")
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self.folder / name, text)

    def read_plain(self, name: str) -> str | None:
        return self.read(name)

    def write_plain(self, name: str, text: str | None) -> None:
        if text is None:
            (self.folder / name).unlink(missing_ok=True)
        else:
            self.write(name, text)
