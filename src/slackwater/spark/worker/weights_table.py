"""The weights of standing queries in Parquet files, looked at in every micro-batch and read again when they change."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow.fs as fs
import pyarrow.parquet as pq

from slackwater.errors import InvalidData
from slackwater.kernel.standing.weights import ShardWeights


@dataclass(frozen=True, slots=True)
class WeightsTable:
    """A folder of Parquet files (or one), and which columns mean what; shared by driver and executors.

    Where ``within`` or ``confidence`` is None, a column of that name says it for each query.
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
        """The columns that are read, and what they are called inside."""
        named = {self.query: "query", self.stream: "stream", self.weight: "weight"}
        own = {
            name: name for name, given in (("within", self.within), ("confidence", self.confidence)) if given is None
        }
        return named | own

    def shard(self, number: int) -> ShardWeights:
        """The queries of one shard as they are now; a process reads each version once.

        While the folder is being rewritten (there is a ``_temporary``, or nothing at all) the version before holds.
        """
        last = _READ.get((self, number))
        files, whole = self._files()
        version = tuple((file.path, file.size, file.mtime_ns) for file in files)
        if last is not None and (last[0] == version or not whole):
            return last[1]
        try:
            frame = self._read([file.path for file in files], number)
        except FileNotFoundError:
            if last is not None:
                return last[1]
            frame = pd.DataFrame({name: [] for name in self.columns.values()})
        weights = ShardWeights(frame, self.within, self.confidence)
        _READ[self, number] = version, weights
        return weights

    def shard_of(self, number: int, streams: list[str]) -> ShardWeights:
        """The same, whatever streams there are."""
        return self.shard(number)

    def _files(self) -> tuple[list[fs.FileInfo], bool]:
        system, path = _system(self.folder)
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [info], True
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        below = [(file, file.path.removeprefix(path).lstrip("/").split("/")) for file in found]
        hidden = {parts[0] for _, parts in below if parts[0].startswith(("_", "."))}
        files = [
            file
            for file, parts in below
            if file.type == fs.FileType.File and not any(part.startswith(("_", ".")) for part in parts)
        ]
        return sorted(files, key=lambda file: file.path), bool(files) and "_temporary" not in hidden

    def _read(self, paths: list[str], number: int) -> pd.DataFrame:
        system, _ = _system(self.folder)
        columns, parts = self.columns, []
        for path in paths:
            file = pq.ParquetFile(system.open_input_file(path))
            missing = set(columns) - set(file.schema_arrow.names)
            if missing:
                raise InvalidData(
                    "no-such-column", f"the weights lack {', '.join(sorted(missing))}", f"give {', '.join(columns)}"
                )
            for batch in file.iter_batches(1 << 20, columns=list(columns)):
                there = batch.filter(batch.column(self.query).is_valid())  # nulls would turn whole numbers into others
                part = there.to_pandas().rename(columns=columns)
                mine = pd.util.hash_array(part["query"].to_numpy()) % self.shards == number
                parts.append(part[mine])
        if not parts:
            return pd.DataFrame({name: pd.Series(dtype="object") for name in columns.values()}).astype(
                {"weight": float}
            )
        whole: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return whole


_READ: dict[tuple[WeightsTable, int], tuple[object, ShardWeights]] = {}


def _system(folder: str) -> tuple[fs.FileSystem, str]:
    if folder.startswith("file:"):
        return fs.LocalFileSystem(), "/" + folder.removeprefix("file:").lstrip("/")
    if "://" in folder:
        system, path = fs.FileSystem.from_uri(folder)
        return system, path
    return fs.LocalFileSystem(), folder
