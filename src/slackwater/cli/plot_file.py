"""``--plot``: the file is tried before work starts."""

from __future__ import annotations

from pathlib import Path

from slackwater.errors import InvalidOption
from slackwater.extras import require
from slackwater.files import require_output_file

_FORMATS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def require_plot_file(file: Path | None) -> None:
    """Raise now if a plot cannot be written to the file later; None is always right."""
    if file is None:
        return
    require("matplotlib", purpose="--plot")
    if file.suffix.lower() not in _FORMATS:
        problem = f"--plot {file} does not end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"
        raise InvalidOption("unknown-format", problem, f"write {file.with_suffix('.png')}")
    require_output_file(file, "--plot")
