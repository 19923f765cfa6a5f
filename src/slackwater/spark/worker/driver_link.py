"""The heartbeat reader's link to the driver, which keeps the control row."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

from slackwater.errors import MissingRequirement
from slackwater.spark.worker.control_line import ControlLine

DONE = b"done\n"


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """A control line for the promise in ``folder``; ``reset`` allows it to lower the heartbeat."""

    folder: str
    line: ControlLine
    reset: bool = False

    def text(self) -> bytes:
        """The message as one line.

        >>> message = ControlMessage("/a b", ControlLine(5, 6, 7, 8), reset=True)
        >>> ControlMessage.parse(message.text()) == message
        True
        """
        return json.dumps([self.folder, self.line.text(), self.reset]).encode() + b"\n"

    @classmethod
    def parse(cls, text: bytes) -> ControlMessage:
        """The inverse of ``text``."""
        folder, line, reset = json.loads(text)
        return cls(folder, ControlLine.parse(line), reset)


class DriverLink:
    """Sends control lines over the driver's socket and waits until they are in force."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def put(self, message: ControlMessage) -> None:
        """Set the driver's control row; fails if the driver does not confirm it.

        A query that went on would judge rows by an older heartbeat than Spark's watermark.
        """
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.connect(self._address)
            self._socket.sendall(message.text())
            answer = self._socket.recv(len(DONE))
        except OSError as error:
            raise self._failure(str(error)) from None
        if answer != DONE:
            raise self._failure("it did not set the control row")

    def _failure(self, reason: str) -> MissingRequirement:
        return MissingRequirement(
            "driver-not-reached",
            f"the heartbeat reader needs the driver at the socket {self._address}: {reason}",
            "run both with the same temporary folder, or set spark.slackwater.controlRow=file",
        )
