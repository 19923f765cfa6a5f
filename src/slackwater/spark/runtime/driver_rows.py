"""The control rows that a session keeps in its driver, and the socket through which heartbeat readers set them."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from slackwater.errors import InvalidOption
from slackwater.spark.runtime.driver_row import DriverRow
from slackwater.spark.runtime.settings import Setting, setting
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.driver_link import DONE, ControlMessage
from slackwater.spark.worker.mailbox import Mailbox


class DriverRows:
    """One control row per promise folder: the control line and the current time.

    A heartbeat reader is a process beside the driver. It sends the control line when Spark plans a micro-batch and goes
    on when the row has changed, so the plan of that micro-batch has the new numbers. The socket is a file that only the
    user can open.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._rows: dict[str, tuple[DriverRow, ControlLine]] = {}
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="slackwater-", ignore_cleanup_errors=True)
        self.address = str(Path(self._folder.name) / "control")
        server = socketserver.ThreadingUnixStreamServer(self.address, _Connection)
        server.daemon_threads = True
        server.put = self.put  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, name="slackwater-control", daemon=True).start()

    def load(self, mailbox: Mailbox) -> DataFrame:
        """The control row of a promise, with the numbers that its file has now."""
        folder, line = str(mailbox.folder), mailbox.read_control()
        with self._lock:
            row = self._rows[folder][0] if folder in self._rows else DriverRow(self._spark)
            self._set(folder, row, line)
            return row.frame

    def put(self, message: ControlMessage) -> None:
        """Set a control row. Queries may share it, so only a reset lowers its heartbeat."""
        with self._lock:
            row, line = self._rows[message.folder]
            lower = message.line.heartbeat_us < line.heartbeat_us
            self._set(message.folder, row, line if lower and not message.reset else message.line)

    def _set(self, folder: str, row: DriverRow, line: ControlLine) -> None:
        row.set((*line.numbers, time.time_ns() // 1000))
        self._rows[folder] = (row, line)


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        put: Any = self.server.put  # type: ignore[attr-defined]
        with contextlib.suppress(ConnectionError):
            for text in self.rfile:
                put(ControlMessage.parse(text))
                self.wfile.write(DONE)


_SESSIONS: WeakKeyDictionary[SparkSession, DriverRows | None] = WeakKeyDictionary()
_SESSIONS_LOCK = threading.Lock()


def driver_rows(spark: SparkSession) -> DriverRows | None:
    """The session's rows in the driver; None where there can be none, and control rows must be read from files.

    That is so in a session without Py4J (Spark Connect), on a system without Unix sockets, and where
    ``spark.slackwater.controlRow`` is ``file``.
    """
    where = setting(spark, Setting.CONTROL_ROW) or "driver"
    if where not in ("driver", "file"):
        raise InvalidOption(
            "invalid-setting", f"{Setting.CONTROL_ROW.value}={where!r} is no place for it", "set 'driver' or 'file'"
        )
    if where == "file":
        return None
    with _SESSIONS_LOCK:
        if spark not in _SESSIONS:
            _SESSIONS[spark] = _opened(spark)
        return _SESSIONS[spark]


def _opened(spark: SparkSession) -> DriverRows | None:
    if not hasattr(socket, "AF_UNIX"):
        return None
    try:
        DriverRow(spark)
    except Exception:
        return None
    return DriverRows(spark)
