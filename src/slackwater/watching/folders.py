"""Finds the series files of promises in folders."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from slackwater.watching.series import Series
from slackwater.watching.series_file import PATTERN, SeriesReader

# the folder of a promise; a location with several promises; a checkpoint, or a folder of checkpoints, with a location
_SUBFOLDERS = ("", "*/", "slackwater/*/", "_slackwater/*/", "*/slackwater/*/", "*/_slackwater/*/")
_MAX_SERIES = 500
_registered: dict[Path, None] = {}


def register_folder(folder: Path) -> None:
    """Note that this process writes a series to ``folder``."""
    _registered[folder] = None


def registered_folders() -> list[Path]:
    """The folders to which this process writes series."""
    return list(_registered)


def temporary_folders() -> list[Path]:
    """This machine's folders of promises without a location, or with one that is not on this machine."""
    base = Path(tempfile.gettempdir())
    return sorted([*base.glob("slackwater-*/"), *base.glob("slackwater-*/*/")])


def promise_folders(location: Path) -> list[Path]:
    """The folders of promises at ``location``, which may also be a checkpoint or a folder of checkpoints."""
    found = {path.resolve() for pattern in _SUBFOLDERS for path in (location.glob(pattern) if pattern else [location])}
    return sorted(path for path in found if path.is_dir())


class SeriesFinder:
    """Finds all series below some folders. Each call of ``find`` reads only what is new.

    Not thread-safe. A call with 50 unchanged series takes about a millisecond. Series of queries that ended are found
    too, until their folder is removed.
    """

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        self._folders = folders
        self._readers: dict[Path, SeriesReader] = {}

    def find(self) -> list[Series]:
        """The series as they are now, running queries first, sorted by query and promise."""
        found: dict[Path, SeriesReader] = {}
        for folder in self._folders():
            for subfolder in _SUBFOLDERS:
                for path in folder.glob(subfolder + PATTERN):
                    if len(found) < _MAX_SERIES:
                        found[path] = self._readers.get(path) or SeriesReader(path)
        self._readers = found
        read = [series for reader in found.values() if (series := reader.read()) is not None and series.points]
        return sorted(
            read, key=lambda s: (s.ended is not None, _by_number(s.about.query), s.about.query_id, s.about.promise)
        )


def _by_number(name: str) -> list[tuple[int, str]]:
    """A key that sorts ``peaks 2`` before ``peaks 10``."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
