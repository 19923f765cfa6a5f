"""The decorator of tests that check a usage of a promise. ``scripts/usages.py`` makes docs/usages.md from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def usage(what: str, holds: str) -> Callable[[Test], Test]:
    """Mark a test with the usage that it checks and what holds for it; the script reads both from the source."""
    return lambda test: test
