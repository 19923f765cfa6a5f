"""A query's checkpoint, read through Hadoop's file system, wherever it is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from slackwater.errors import InvalidData

_HEAD = 2
"""Lines of an offset file before those of the sources: version and metadata."""


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """Up to where each source was read in a micro-batch, as text, in the order of the sources."""

    head: tuple[str, ...]
    sources: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> BatchOffsets:
        """Read an offset file of version 1.

        >>> BatchOffsets.parse('v1\\n{"batchTimestampMs":5}\\n{"epoch":"e"}\\n7').sources
        ('{"epoch":"e"}', '7')
        """
        lines = text.splitlines()
        if lines[0] != "v1":
            raise InvalidData(
                "unknown-checkpoint", f"its offsets have the version {lines[0]}", "report it: only v1 is known"
            )
        return cls(tuple(lines[:_HEAD]), tuple(lines[_HEAD:]))

    @property
    def watermark_ms(self) -> int:
        """Spark's watermark in the micro-batch; 0 if there is none yet.

        >>> BatchOffsets.parse('v1\\n{"batchWatermarkMs":5}\\n7').watermark_ms
        5
        """
        return int(json.loads(self.head[1]).get("batchWatermarkMs", 0))

    def of(self, sources: Sequence[int]) -> str:
        """The text of an offset file for some of the sources."""
        return "\n".join([*self.head, *(self.sources[source] for source in sources)])


class Checkpoint:
    """The checkpoint of a query."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        session: Any = spark
        self._jvm = session._jvm
        self._configuration = session._jsparkSession.sessionState().newHadoopConf()
        self._root = root

    def offsets(self, batch: int) -> BatchOffsets:
        """The offsets of a micro-batch. Spark keeps those of the last hundred."""
        return BatchOffsets.parse(self._read(f"offsets/{batch}"))

    def copy_batch(self, batch: int, sources: Sequence[int], to: Path) -> None:
        """Make a checkpoint in a local folder in which this micro-batch is not committed, with some of the sources."""
        for name in ("offsets", "commits", "sources"):
            (to / name).mkdir()
        (to / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        (to / "offsets" / str(batch)).write_text(self.offsets(batch).of(sources))
        if batch > 0:
            (to / "offsets" / str(batch - 1)).write_text(self.offsets(batch - 1).of(sources))
            (to / "commits" / str(batch - 1)).write_text(self._read(f"commits/{batch - 1}"))
        for number, source in enumerate(sources):
            self._copy(f"sources/{source}", to / "sources" / str(number))

    def _read(self, name: str) -> str:
        path = self._path(f"{self._root}/{name}")
        stream = path.getFileSystem(self._configuration).open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _copy(self, name: str, to: Path) -> None:
        """Copy a folder, if there is one: not every source keeps something in the checkpoint."""
        path, target = self._path(f"{self._root}/{name}"), self._path(to.as_uri())
        system = path.getFileSystem(self._configuration)
        if system.exists(path):
            local = target.getFileSystem(self._configuration)
            copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
            copy(system, path, local, target, False, self._configuration)

    def _path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)
