"""Reads a file of query text."""

from __future__ import annotations

from pathlib import Path

from slackwater.errors import InvalidData


def read_query_file(path: Path) -> str:
    """The text of a UTF-8 file, without its byte order mark. Other encodings raise ``InvalidData``."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidData(
            "not-utf-8",
            f"byte {error.start + 1} of {path} (0x{data[error.start]:02x}, in line {line}) is not UTF-8",
            "save the file as UTF-8",
        ) from None
