"""What a user may demand of a stream, checked and in plain numbers."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from dataclasses import dataclass

from slackwater import units
from slackwater.errors import InvalidOption

Duration = str | float | dt.timedelta
DEFAULT_IDLE_AFTER_MS = 60_000.0


@dataclass(frozen=True, slots=True)
class Completeness:
    """At most ``drop_ratio`` of the valid rows come after the heartbeat has passed them (``DRATIO``).

    The wait is what keeps it: between ``min_wait_ms`` and ``max_wait_ms``, where the larger promise yields
    to ``max_wait_ms``, as a user who bounds the wait has said what matters more. A stream that is silent for
    ``idle_after_ms`` is taken to be idle. A ratio of 0 is best effort: no promise is claimed.
    """

    drop_ratio: float
    min_wait_ms: float = 0.0
    max_wait_ms: float = float("inf")
    idle_after_ms: float = DEFAULT_IDLE_AFTER_MS

    @classmethod
    def of(
        cls,
        drop_ratio: str | float,
        *,
        min_wait: Duration | None = None,
        max_wait: Duration | None = None,
        idle_after: Duration | None = None,
    ) -> Completeness:
        """The promise from values as users write them.

        >>> Completeness.of("1%", max_wait="10 minutes").max_wait_ms
        600000.0
        """
        least = 0.0 if min_wait is None else units.duration_ms(min_wait, option="min_wait")
        most = float("inf") if max_wait is None else units.duration_ms(max_wait, option="max_wait")
        if least > most:
            raise InvalidOption(
                "empty-wait-range",
                f"min_wait={min_wait!r} is more than max_wait={max_wait!r}",
                "swap them or leave one out",
            )
        idle = DEFAULT_IDLE_AFTER_MS if idle_after is None else units.duration_ms(idle_after, option="idle_after")
        return cls(units.ratio(drop_ratio, option="drop_ratio"), least, most, idle)

    def kept_by(self, late: int, on_time: int) -> bool:
        """Whether the rows counted so far keep the promise; exact, no tolerance."""
        return self.drop_ratio == 0.0 or late <= self.drop_ratio * (late + on_time)


@dataclass(frozen=True, slots=True)
class Precision:
    """An answer stays within ``bound`` of the truth (or within that fraction of it) with the given confidence.

    Evaluations are what keep it. A bound of zero asks for an answer at every tick.
    """

    bound: float
    relative: bool
    confidence: float

    @classmethod
    def of(cls, within: str | float, confidence: str | float) -> Precision:
        """The promise from values as users write them: ``0.5`` is absolute, ``"1%"`` relative.

        >>> Precision.of("1%", 0.9), Precision.of(0.5, "95%").confidence
        (Precision(bound=0.01, relative=True, confidence=0.9), 0.95)
        """
        bound, relative = math.nan, False
        if isinstance(within, str):
            text = within.strip()
            relative = text.endswith("%")
            try:
                bound = float(text.removesuffix("%")) / (100.0 if relative else 1.0)
            except ValueError:
                bound = math.nan
        elif not isinstance(within, bool):
            bound = float(within)
        if not (math.isfinite(bound) and bound >= 0.0):
            raise InvalidOption(
                "invalid-bound",
                f"within={within!r} is not a bound",
                "write 0.5, or '1%' of the answer; zero means an answer at every tick",
            )
        level = math.nan
        with contextlib.suppress(InvalidOption):
            level = units.ratio(confidence, option="confidence")
        if not 0.0 < level < 1.0:
            raise InvalidOption(
                "invalid-confidence",
                f"confidence={confidence!r} is not between 0 and 1",
                "write 0.9 or '95%'; for certainty use a bound of zero",
            )
        return cls(bound, relative, level)


@dataclass(frozen=True, slots=True)
class Timeliness:
    """The mean delay stays at or below ``max_delay_s`` seconds (``DELAY``), at the price of rows shed under overload.

    Nothing is shed while the load is below capacity and the delay below the target. A target that one row alone
    already exceeds cannot be kept; the controller then says so and does its best.
    """

    max_delay_s: float

    @classmethod
    def of(cls, max_delay: Duration) -> Timeliness:
        """The promise from a duration as users write it.

        >>> Timeliness.of("2 seconds").max_delay_s
        2.0
        """
        delay_ms = units.duration_ms(max_delay, option="max_delay")
        if delay_ms <= 0:
            raise InvalidOption(
                "no-delay-at-all", f"max_delay={max_delay!r} leaves no time to work", "allow more than nothing"
            )
        return cls(delay_ms / 1e3)
