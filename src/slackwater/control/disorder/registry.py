"""Methods of disorder control by name; a method registers itself in its own file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from slackwater.control.disorder.protocol import DisorderMethod
from slackwater.control.disorder.slack import SlackCap
from slackwater.errors import InvalidOption, UnknownName
from slackwater.promises import Completeness

Method = TypeVar("Method", bound=type)
_METHODS: dict[str, Callable[..., DisorderMethod]] = {}

DEFAULT_METHOD = "budgeted-quantile"


def register(cls: Method) -> Method:
    """Make a method available under its ``name``; it is built as ``cls(promise, **options)``."""
    _METHODS[cls.name] = cls  # type: ignore[attr-defined]
    return cls


def method_names() -> list[str]:
    """The names that ``method=`` accepts, sorted."""
    _load_all()
    return sorted(_METHODS)


def make_method(name: str, promise: Completeness, **options: Any) -> DisorderMethod:
    """A fresh method of that name for that promise; ``slack_rows`` caps the buffer of any method.

    ``slack_rows=0`` is the punctuation configuration of Kim 2007, §4: there is no buffer to cap.

    >>> make_method("no-such-method", Completeness(0.01))
    Traceback (most recent call last):
    ...
    slackwater.errors.UnknownName: [unknown-method] there is no method 'no-such-method'; ...
    """
    _load_all()
    if name not in _METHODS:
        raise UnknownName(
            "unknown-method", f"there is no method {name!r}", f"use one of: {', '.join(sorted(_METHODS))}"
        )
    slack_rows = None if name == "fixed-slack" else options.pop("slack_rows", None)
    try:
        method = _METHODS[name](promise, **options)
    except TypeError as error:
        raise InvalidOption(
            "unknown-method-option", f"{name} does not take {options!r} ({error})", "see the method's page"
        ) from error
    return SlackCap(method, slack_rows) if slack_rows else method


def _load_all() -> None:
    package = importlib.import_module("slackwater.control.disorder")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
