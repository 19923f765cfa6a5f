"""Atomic replacement of small files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the old text or the new one, even after a power failure."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)  # executors may run as another user
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
