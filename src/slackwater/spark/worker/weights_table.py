"""The weights of standing queries in Parquet files, read again when the files change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow.fs as fs
import pyarrow.parquet as pq

from slackwater.errors import InvalidData
from slackwater.kernel.standing.weights import ShardWeights

_BATCH_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class WeightsTable:
    """A folder of Parquet files (or one file) and the meaning of its columns.

    ``query``, ``stream`` and ``weight`` are column names. If ``within`` or ``confidence`` is None, the column of that
    name gives it for each query. ``shards`` is the number of shards that share the queries.
    """

    folder: str
    query: str
    stream: str
    weight: str
    within: str | float | None
    confidence: str | float | None
    shards: int

    @property
    def columns(self) -> dict[str, str]:
        """The columns to read, and their names in ``ShardWeights``."""
        named = {self.query: "query", self.stream: "stream", self.weight: "weight"}
        if self.within is None:
            named["within"] = "within"
        if self.confidence is None:
            named["confidence"] = "confidence"
        return named

    def shard(self, number: int, streams: Sequence[str] = ()) -> ShardWeights:
        """The queries of one shard as of now. ``streams`` has no effect: the table names its own.

        Lists the folder on every call; a process reads each version of the files once. While the folder is being
        rewritten (it has a ``_temporary``, or no files) the previous version stays in force.
        """
        cached = _CACHE.get((self, number))
        files, complete = self._files()
        version = tuple((file.path, file.size, file.mtime_ns) for file in files)
        if cached is not None and (cached[0] == version or not complete):
            return cached[1]
        try:
            frame = self._read([file.path for file in files], number)
        except FileNotFoundError:
            if cached is not None:
                return cached[1]
            frame = pd.DataFrame({name: [] for name in self.columns.values()})
        weights = ShardWeights(frame, self.within, self.confidence)
        _CACHE[self, number] = version, weights
        return weights

    def _files(self) -> tuple[list[fs.FileInfo], bool]:
        """The data files, and whether the folder is complete, that is, not being rewritten."""
        system, path = _file_system(self.folder)
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [info], True
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        with_parts = [(file, file.path.removeprefix(path).lstrip("/").split("/")) for file in found]
        files = [
            file
            for file, parts in with_parts
            if file.type == fs.FileType.File and not any(part.startswith(("_", ".")) for part in parts)
        ]
        rewriting = any(parts[0] == "_temporary" for _, parts in with_parts)
        return sorted(files, key=lambda file: file.path), bool(files) and not rewriting

    def _read(self, paths: list[str], number: int) -> pd.DataFrame:
        system, _ = _file_system(self.folder)
        columns, parts = self.columns, []
        for path in paths:
            file = pq.ParquetFile(system.open_input_file(path))
            missing = set(columns) - set(file.schema_arrow.names)
            if missing:
                raise InvalidData(
                    "no-such-column",
                    f"the weights have no column {', '.join(sorted(missing))}",
                    f"write the columns {', '.join(columns)}",
                )
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                # With a null among them, pandas would turn integer ids into floats.
                with_query = batch.filter(batch.column(self.query).is_valid())
                part = with_query.to_pandas().rename(columns=columns)
                mine = pd.util.hash_array(part["query"].to_numpy()) % self.shards == number
                parts.append(part[mine])
        if not parts:
            empty = pd.DataFrame({name: pd.Series(dtype="object") for name in columns.values()})
            return empty.astype({"weight": float})
        whole: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return whole


_CACHE: dict[tuple[WeightsTable, int], tuple[object, ShardWeights]] = {}
"""The last version read by this process, per table and shard."""


def _file_system(folder: str) -> tuple[fs.FileSystem, str]:
    if folder.startswith("file:"):
        return fs.LocalFileSystem(), "/" + folder.removeprefix("file:").lstrip("/")
    if "://" in folder:
        system, path = fs.FileSystem.from_uri(folder)
        return system, path
    return fs.LocalFileSystem(), folder
