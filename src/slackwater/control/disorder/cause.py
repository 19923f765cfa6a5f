"""The reason for a heartbeat decision: a token for programs, rendered as text for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_TEXTS = {
    "front-frame": "front frame",
    "budget": "held: budget spent",
    "after-stall": "held: back after a stall",
    "source-behind": "held: source {source} is behind",
    "source-silent": "held: source {source} is silent",
    "max-wait": "max_wait",
    "min-wait": "min_wait",
    "held": "held: the method asks for a longer wait",
    "slack": "slack: the buffer is full",
    "silent": "held: no newer row is known",
    "idle": "idle: no row has come",
    "stream-ended": "the stream has ended",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """What decided a heartbeat. ``kind`` is a stable token, ``source`` the number of the source it is about, if any.

    A method may use kinds of its own; such a kind is its own text.

    >>> Cause("source-behind", source=3).text()
    'held: source 3 is behind'
    >>> Cause("source-behind", source=3).text({3: "berlin"}.__getitem__)
    'held: source berlin is behind'
    """

    kind: str
    source: int | None = None

    def text(self, name_of: Callable[[int], str] = str) -> str:
        """The cause in words; ``name_of`` turns the number of a source into its name."""
        template = _TEXTS.get(self.kind, self.kind)
        return template if self.source is None else template.format(source=name_of(self.source))


METHOD = Cause("method")
"""The method's formula decided, and the method says no more than that."""
STREAM_ENDED = Cause("stream-ended")
"""No row comes any more, so every window was closed."""


def cause_of(method: object) -> Cause:
    """The cause that a method gives for its last heartbeat; ``METHOD`` for a method without causes."""
    cause: Cause = getattr(method, "cause", METHOD)
    return cause
