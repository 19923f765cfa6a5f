"""JSON texts with a checksum at their end, so that a damaged one is known."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_END = re.compile(r', "checksum": "([0-9a-f]{16})"\}\s*\Z')


def checked_json(values: dict[str, Any]) -> str:
    """The text of ``values``, which must not be empty, with its checksum."""
    body = json.dumps(values)
    return f'{body[:-1]}, "checksum": "{_checksum(body)}"}}'


def read_checked_json(text: str) -> dict[str, Any] | None:
    """The inverse of ``checked_json``; None if the text is damaged or has no checksum.

    >>> read_checked_json(checked_json({"a": 1}))
    {'a': 1}
    >>> read_checked_json(checked_json({"a": 1}).replace("1", "2", 1)) is None
    True
    """
    end = _END.search(text)
    if end is None:
        return None
    body = text[: end.start()] + "}"
    if _checksum(body) != end[1]:
        return None
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
