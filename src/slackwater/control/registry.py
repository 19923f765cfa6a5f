"""Implementations by name. A class registers itself with a decorator, in its own file."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Generic, TypeVar

from slackwater.errors import InvalidOption, UnknownName

T = TypeVar("T")
Registered = TypeVar("Registered", bound=type)


class Registry(Generic[T]):
    """Classes of one kind by their ``name`` attribute.

    ``kind`` is the word for them in error messages, such as ``"method"``. The modules of ``packages`` are imported at
    the first lookup, so that their classes have registered themselves.
    """

    def __init__(self, kind: str, packages: tuple[str, ...]) -> None:
        self._kind = kind
        self._packages = packages
        self._classes: dict[str, type] = {}
        self._loaded = False

    def register(self, cls: Registered) -> Registered:
        """Class decorator: add ``cls`` under its ``name``."""
        self._classes[cls.name] = cls  # type: ignore[attr-defined]
        return cls

    def unregister(self, name: str) -> None:
        """Remove a class, such as one that a test registered."""
        self._classes.pop(name)

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._load()
        return sorted(self._classes)

    def find(self, name: str) -> type:
        """The class called ``name``; raises ``UnknownName`` if there is none."""
        self._load()
        if name not in self._classes:
            kind = self._kind
            known = ", ".join(self.names())
            raise UnknownName(f"unknown-{kind}", f"there is no {kind} {name!r}", f"use one of: {known}")
        return self._classes[name]

    def make(self, name: str, *args: Any, **options: Any) -> T:
        """Create an instance of the class called ``name``.

        Raises ``UnknownName`` if there is no such class and ``InvalidOption`` if it does not take the options.
        """
        found = self.find(name)
        try:
            made: T = found(*args, **options)
        except TypeError as error:
            raise InvalidOption(
                f"unknown-{self._kind}-option",
                f"{name} does not take {options!r} ({error})",
                f"see the {self._kind}'s page",
            ) from error
        return made

    def _load(self) -> None:
        if self._loaded:
            return
        for name in self._packages:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(module.name)
        self._loaded = True
