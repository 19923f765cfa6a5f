"""The folder of recorded traces: the environment variable SLACKWATER_DATA, or ``../shared/data`` of the checkout."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def data_folder(checkout: Path = CHECKOUT) -> Path:
    """The folder of recorded traces. It need not exist; benchmarks leave out traces that are missing."""
    given = os.environ.get("SLACKWATER_DATA")
    return Path(given) if given else checkout.parent / "shared" / "data"
