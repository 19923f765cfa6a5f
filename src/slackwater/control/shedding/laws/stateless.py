"""Base class of laws without state."""

from __future__ import annotations

from typing import Any


class Stateless:
    """A law that depends only on the last period and has no state to save."""

    def snapshot(self) -> dict[str, Any]:
        """An empty object."""
        return {}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Does nothing."""
