"""Generated streams by name. A stream registers itself with ``@stream``, in its own file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

from slackwater.errors import UnknownName
from slackwater.sim.trace import Trace

Maker = TypeVar("Maker", bound=Callable[..., Trace])
_STREAMS: dict[str, Callable[..., Trace]] = {}


def stream(name: str) -> Callable[[Maker], Maker]:
    """Function decorator: register a function of a seed under ``name``. Its other arguments need defaults."""

    def add(maker: Maker) -> Maker:
        _STREAMS[name] = maker
        return maker

    return add


def stream_names() -> list[str]:
    """The names that ``--generated`` accepts, sorted."""
    _load_all()
    return sorted(_STREAMS)


def make_stream(name: str, seed: int = 0) -> Trace:
    """Generate the stream called ``name``. The same seed gives the same rows.

    >>> make_stream("no-such-stream")
    Traceback (most recent call last):
    ...
    slackwater.errors.UnknownName: [unknown-stream] there is no generated stream 'no-such-stream'; use one of: ...
    """
    _load_all()
    if name not in _STREAMS:
        raise UnknownName(
            "unknown-stream", f"there is no generated stream {name!r}", f"use one of: {', '.join(sorted(_STREAMS))}"
        )
    return _STREAMS[name](seed)


def _load_all() -> None:
    package = importlib.import_module("slackwater.sim.streams")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
