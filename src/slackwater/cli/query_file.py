"""A file of query text, read so that what cannot be read is said as bad input."""

from __future__ import annotations

from pathlib import Path

from slackwater.errors import InvalidData


def read_query_file(path: Path) -> str:
    """The text of a file in UTF-8, with or without the mark that some editors put in front."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidData(
            "not-utf-8",
            f"byte {error.start + 1} of {path} (0x{data[error.start]:02x}, in line {line}) is no UTF-8",
            "save it as UTF-8",
        ) from None
