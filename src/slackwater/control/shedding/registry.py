"""Laws of load shedding by name; a law registers itself in its own file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from slackwater.control.shedding.protocol import SheddingLaw
from slackwater.errors import InvalidOption, UnknownName

Law = TypeVar("Law", bound=type)
_LAWS: dict[str, Callable[..., SheddingLaw]] = {}

DEFAULT_LAW = "ctrl"


def register(cls: Law) -> Law:
    """Make a law available under its ``name``; it is built as ``cls(**options)``."""
    _LAWS[cls.name] = cls  # type: ignore[attr-defined]
    return cls


def law_names() -> list[str]:
    """The names that ``law=`` accepts, sorted."""
    _load_all()
    return sorted(_LAWS)


def make_law(name: str, **options: Any) -> SheddingLaw:
    """A fresh law of that name.

    >>> make_law("no-such-law")
    Traceback (most recent call last):
    ...
    slackwater.errors.UnknownName: [unknown-law] there is no law 'no-such-law'; ...
    """
    _load_all()
    if name not in _LAWS:
        raise UnknownName("unknown-law", f"there is no law {name!r}", f"use one of: {', '.join(sorted(_LAWS))}")
    try:
        return _LAWS[name](**options)
    except TypeError as error:
        raise InvalidOption(
            "unknown-law-option", f"{name} does not take {options!r} ({error})", "see the law's page"
        ) from error


def _load_all() -> None:
    package = importlib.import_module("slackwater.control.shedding")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
