"""Laws of load shedding by name. A law registers itself with ``@register``, in its own file."""

from __future__ import annotations

from typing import Any

from slackwater.control.registry import Registry
from slackwater.control.shedding.protocol import SheddingLaw

DEFAULT_LAW = "ctrl"

_LAWS = Registry[SheddingLaw]("law", ("slackwater.control.shedding.laws",))
register = _LAWS.register
"""Class decorator. The class is instantiated as ``cls(**options)``."""


def law_names() -> list[str]:
    """The names that ``law=`` accepts, sorted."""
    return _LAWS.names()


def make_law(name: str, **options: Any) -> SheddingLaw:
    """Create the law called ``name``.

    >>> make_law("no-such-law")
    Traceback (most recent call last):
    ...
    slackwater.errors.UnknownName: [unknown-law] there is no law 'no-such-law'; ...
    """
    return _LAWS.make(name, **options)
