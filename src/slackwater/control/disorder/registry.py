"""Methods of disorder control by name. A method registers itself with ``@register``, in its own file."""

from __future__ import annotations

from typing import Any

from slackwater.control.disorder.protocol import DisorderMethod
from slackwater.control.disorder.slack_cap import SlackCap
from slackwater.control.registry import Registry
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

DEFAULT_METHOD = "budgeted-quantile"

_METHODS = Registry[DisorderMethod](
    "method", ("slackwater.control.disorder.methods", "slackwater.control.disorder.budgeted")
)
register = _METHODS.register
"""Class decorator. The class is instantiated as ``cls(promise, **options)``."""


def method_names() -> list[str]:
    """The names that ``method=`` accepts, sorted."""
    return _METHODS.names()


def make_method(name: str, promise: Completeness, **options: Any) -> DisorderMethod:
    """Create the method called ``name`` for ``promise``. The option ``slack_rows`` caps the buffer of any method.

    >>> make_method("no-such-method", Completeness(0.01))
    Traceback (most recent call last):
    ...
    slackwater.errors.UnknownName: [unknown-method] there is no method 'no-such-method'; ...
    """
    slack_rows = None if name == "fixed-slack" else options.pop("slack_rows", None)
    method = _METHODS.make(name, promise, **options)
    return method if slack_rows is None else SlackCap(method, slack_rows)


def refuse_unused(name: str, options: dict[str, Any]) -> None:
    """Refuse options that change nothing for a stream with an arrival clock, which every stream on Spark has.

    A method names the options that it uses without a clock only (``without_clock``).
    """
    for option in sorted(getattr(_METHODS.find(name), "without_clock", frozenset()) & options.keys()):
        raise InvalidOption(
            "option-not-used",
            f"{option}={options[option]!r} of {name} has no effect on a stream with a clock",
            f"leave out {option}",
        )
