"""A named implementation with its options, as users write it: ``Method("normal", samples=200)``."""

from __future__ import annotations

from typing import Any, TypeVar

Self = TypeVar("Self", bound="Choice")


class Choice:
    """A name and options. A bare name means the implementation with its default options.

    >>> Choice("normal", samples=200)
    Choice('normal', samples=200)
    >>> Choice.of("normal") == Choice("normal")
    True
    """

    __slots__ = ("name", "options")

    def __init__(self, name: str, /, **options: Any) -> None:
        self.name = name
        self.options = options

    @classmethod
    def of(cls: type[Self], chosen: str | Self) -> Self:
        """Convert a bare name to a choice; return a choice unchanged."""
        return cls(chosen) if isinstance(chosen, str) else chosen

    def with_options(self: Self, **options: Any) -> Self:
        """A copy with default options added; options that the choice already has win."""
        return type(self)(self.name, **{**options, **self.options})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.name, self.options) == (other.name, other.options)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{type(self).__name__}({self.name!r}{options})"


class Method(Choice):
    """A method of disorder control with its options. ``slackwater.method_names()`` lists the names."""


class Law(Choice):
    """A law of load shedding with its options. ``slackwater.law_names()`` lists the names."""
