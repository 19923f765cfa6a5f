"""What each query of the demo lost and how old its results were, phase by phase."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

PROMISED = "promised"
"""The name of the query under the promise."""
_TOO_OLD_FACTOR = 2.0
_TOO_OLD_MS = 2_000.0
"""Results are too old if they are twice as old as the promise's, and two seconds older."""


class Published(NamedTuple):
    """A window that a query has published: the rows in it, and its age when its micro-batch was committed."""

    rows: int
    age_ms: float


@dataclass(frozen=True, slots=True)
class Span:
    """A phase in windows: those that end in ``(start, end]``, in window lengths since the stream began.

    ``lateness_ms`` is what 99% of the phase's rows stay within.
    """

    name: str
    start: int
    end: int
    lateness_ms: float

    @property
    def windows(self) -> range:
        """The ends of its windows."""
        return range(self.start + 1, self.end + 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query did in a phase.

    ``rows`` belong to the windows that it has closed, as counted by a batch job; ``lost`` of them are missing there.
    ``age_ms`` is the mean time from a window's end to the commit that published it, None if none was published.
    """

    windows: int
    rows: int
    lost: int
    age_ms: float | None

    @property
    def lost_ratio(self) -> float:
        """Lost rows / rows of the closed windows."""
        return self.lost / self.rows if self.rows else 0.0

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        return {**dataclasses.asdict(self), "lost_ratio": self.lost_ratio}


@dataclass(frozen=True, slots=True)
class Course:
    """The outcome of one query in every phase that it has reached, and over all of them."""

    phases: Mapping[str, Outcome]
    total: Outcome

    def lost_too_much(self, drop_ratio: float) -> list[str]:
        """The phases in which it lost more than ``drop_ratio``, the worst first."""
        found = [name for name, outcome in self.phases.items() if outcome.lost_ratio > drop_ratio]
        return sorted(found, key=lambda name: -self.phases[name].lost_ratio)

    def too_old(self, promised: Course, drop_ratio: float) -> list[str]:
        """The phases whose results were much older than the promise's, the worst first.

        Only phases count in which the promise did not lose more than ``drop_ratio``: elsewhere its age proves nothing.
        """
        times: dict[str, float] = {}
        for name, outcome in self.phases.items():
            reference = promised.phases.get(name)
            if reference is None or reference.lost_ratio > drop_ratio:
                continue
            age_ms, enough_ms = outcome.age_ms, reference.age_ms
            if age_ms is not None and enough_ms is not None and age_ms >= enough_ms + _TOO_OLD_MS:
                times[name] = age_ms / max(enough_ms, 1.0)
        found = [name for name in times if times[name] >= _TOO_OLD_FACTOR]
        return sorted(found, key=lambda name: -times[name])


def course_of(published: Mapping[int, Published], truth: Mapping[int, int], spans: Iterable[Span]) -> Course:
    """Compare the windows that a query has published with ``truth``, the rows of each window.

    A window is named by its end. Every window up to the newest published one is closed, also if all its rows were lost.
    """
    newest = max(published, default=0)
    windows = {span.name: [end for end in span.windows if end <= newest] for span in spans}
    phases = {name: _outcome(ends, published, truth) for name, ends in windows.items() if ends}
    return Course(phases, _outcome([end for ends in windows.values() for end in ends], published, truth))


def _outcome(ends: list[int], published: Mapping[int, Published], truth: Mapping[int, int]) -> Outcome:
    found = [published[end] for end in ends if end in published]
    rows = sum(truth.get(end, 0) for end in ends)
    age_ms = sum(window.age_ms for window in found) / len(found) if found else None
    return Outcome(len(ends), rows, rows - sum(window.rows for window in found), age_ms)
