"""A storage on any file system that Spark can open, with Spark's own credentials."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import Any

from pyspark.sql import SparkSession

from slackwater.errors import InvalidOption
from slackwater.spark.worker.versioned_text import sealed, unsealed, version_in, version_name

_EXIT_S = 10.0
_PLAIN_AGE_S = 5.0
_KEPT_VERSIONS = 2
_log = logging.getLogger("slackwater")


def hadoop_storage(spark: SparkSession, uri: str) -> HadoopStorage:
    """The storage of a folder; refuses one that Spark cannot open."""
    try:
        return HadoopStorage(uri, *_open(spark, uri))
    except Exception as error:
        raise InvalidOption(
            "invalid-location",
            f"Spark cannot open {uri!r}: {_reason(error)}",
            "check the path, its credentials and the jars of its file system; Spark needs the same for checkpoints",
        ) from error


def _open(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """The JVM, and Hadoop's file system of the folder."""
    session: Any = spark
    jvm = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    system.exists(path)
    return jvm, system


class HadoopStorage:
    """A folder that Hadoop's file system opens: ``s3a://``, ``abfss://``, ``gs://``, ``hdfs://``, ….

    Each text is written as a new object with its number and a checksum, since not every store can replace one. The
    newest whole one counts, and older ones are deleted. A thread writes, so the listener does not wait: a text that is
    replaced before it was written is never written, and a crash may lose the last one. A write that fails is logged
    once; the promise is kept all the same.

    A file that an operator may edit is read again every few seconds, by the same thread.
    """

    def __init__(self, uri: str, jvm: Any, system: Any) -> None:
        self._uri = uri
        self._jvm = jvm
        self._system = system
        self._changed = threading.Condition()
        self._waiting: dict[str, str] = {}
        self._versions: dict[str, list[int]] = {}
        self._plain: dict[str, str | None] = {}
        self._plain_read_s: dict[str, float] = {}
        self._due: set[str] = set()
        self._writing = False
        self._failure_logged = False
        self._thread: threading.Thread | None = None

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def local_folder(self) -> None:
        return None

    def read(self, name: str) -> str | None:
        with self._changed:
            if name in self._waiting:
                return self._waiting[name]
        try:
            for version in reversed(self._versions_of(name)):
                text = self._read_object(version_name(name, version))
                content = None if text is None else unsealed(text)
                if content is not None:
                    return content
        except Exception as error:
            self._log_failure(error)
        return None

    def write(self, name: str, text: str) -> None:
        with self._changed:
            self._waiting[name] = text
            self._wake()

    def read_plain(self, name: str) -> str | None:
        with self._changed:
            if time.monotonic() - self._plain_read_s.get(name, -_PLAIN_AGE_S) >= _PLAIN_AGE_S:
                self._due.add(name)
                self._wake()
                if name not in self._plain:
                    self._changed.wait_for(lambda: name in self._plain, _PLAIN_AGE_S)
            return self._plain.get(name)

    def write_plain(self, name: str, text: str | None) -> None:
        path = self._path(name)
        if text is None:
            self._system.delete(path, False)
        else:
            self._write_object(name, text)
        with self._changed:
            self._plain[name], self._plain_read_s[name] = text, time.monotonic()

    def flush(self, timeout_s: float) -> None:
        """Return when everything is written, or after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._writing, timeout_s)

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="slackwater-storage", daemon=True)
            self._thread.start()
            atexit.register(self.flush, _EXIT_S)
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._due)
                texts, due = self._waiting, self._due
                self._waiting, self._due = {}, set()
                self._writing = True
            for name, text in texts.items():
                try:
                    self._write_version(name, text)
                except Exception as error:
                    self._log_failure(error)
            for name in due:
                self._refresh(name)

    def _refresh(self, name: str) -> None:
        """Read a plain file again. One that is empty or cannot be read is being written: the text before stays."""
        started_s = time.monotonic()
        try:
            text = self._read_object(name)
        except Exception as error:
            self._log_failure(error)
            text = ""
        with self._changed:
            if self._plain_read_s.get(name, 0.0) <= started_s:
                self._plain[name] = self._plain.get(name) if text == "" else text
                self._plain_read_s[name] = time.monotonic()
            self._changed.notify_all()

    def _write_version(self, name: str, text: str) -> None:
        if name not in self._versions:
            self._versions[name] = self._versions_of(name)
        versions = self._versions[name]
        version = versions[-1] + 1 if versions else 0
        self._write_object(version_name(name, version), sealed(text))
        versions.append(version)
        while len(versions) > _KEPT_VERSIONS:
            self._system.delete(self._path(version_name(name, versions.pop(0))), False)

    def _versions_of(self, name: str) -> list[int]:
        folder = self._path()
        if not self._system.exists(folder):
            return []
        found = [str(status.getPath().getName()) for status in self._system.listStatus(folder)]
        return sorted(version for file in found if (version := version_in(name, file)) is not None)

    def _read_object(self, name: str) -> str | None:
        """The text of an object; None if there is none."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return bytes(stream.readAllBytes()).decode(errors="replace")
        finally:
            stream.close()

    def _write_object(self, name: str, text: str) -> None:
        stream = self._system.create(self._path(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _path(self, name: str | None = None) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._uri if name is None else f"{self._uri}/{name}")

    def _log_failure(self, error: Exception) -> None:
        if not self._failure_logged:
            self._failure_logged = True
            _log.warning(
                "[storage-unreachable] %s: %s; promises are kept all the same, but what they learn may be lost at a "
                "restart",
                self._uri,
                _reason(error),
            )


def _reason(error: Exception) -> str:
    """The first line of what Java says."""
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java).strip().splitlines()[0][:300]
