"""What laws without a memory have in common."""

from __future__ import annotations

from typing import Any


class Stateless:
    """Remembers nothing, so there is nothing to save."""

    def snapshot(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Nothing to go on from."""
