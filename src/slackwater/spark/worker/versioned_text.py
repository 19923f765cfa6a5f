"""Small texts as numbered objects with a checksum, for storages that can neither rename nor replace atomically."""

from __future__ import annotations

import hashlib


def sealed(text: str) -> str:
    """The text with its checksum in front."""
    return f"{_checksum(text)}\n{text}"


def unsealed(text: str) -> str | None:
    """The inverse of ``sealed``; None if the text is not whole.

    >>> unsealed(sealed("a"))
    'a'
    >>> unsealed(sealed("a")[:-1]) is None
    True
    """
    checksum, _, content = text.partition("\n")
    return content if checksum == _checksum(content) else None


def version_name(name: str, version: int) -> str:
    """The object of a version.

    >>> version_name("snapshot.json", 7)
    'snapshot.json.0000000007'
    """
    return f"{name}.{version:010d}"


def version_in(name: str, found: str) -> int | None:
    """The inverse of ``version_name``; None if the object is not a version of that name."""
    version = found.removeprefix(name + ".")
    return int(version) if found != version and version.isdigit() else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
