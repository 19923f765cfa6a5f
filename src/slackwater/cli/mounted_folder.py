"""A folder on this machine, as an argument of a verb."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click


class MountedFolder(click.Path):
    """An existing folder, as a path or a ``file:`` URI; says what to do about a location elsewhere."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder."""
        parts = urlsplit(str(value))
        if parts.scheme == "file":
            value = parts.path
        elif "://" in str(value):
            self.fail(
                f"{value} is not on this machine. Use sw.watch, sw.report and sw.retarget in the driver; an operator "
                "may also write target.txt into the promise's folder",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)
