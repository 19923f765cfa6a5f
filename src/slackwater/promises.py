"""The promises that a user can make about a stream: completeness, precision and timeliness, checked, as numbers."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from slackwater import units
from slackwater.errors import InvalidOption

Duration = str | float | dt.timedelta
DEFAULT_IDLE_AFTER_MS = units.MINUTE_MS


@dataclass(frozen=True, slots=True)
class Completeness:
    """At most ``drop_ratio`` of the valid rows are late (``DRATIO``). A ratio of 0 is best effort, without a promise.

    The promise costs a wait between ``min_wait_ms`` and ``max_wait_ms``. If the stream needs a longer wait than
    ``max_wait_ms``, the bound on the wait holds and the drop ratio may be exceeded. A stream that is silent for
    ``idle_after_ms`` counts as idle.
    """

    drop_ratio: float
    min_wait_ms: float = 0.0
    max_wait_ms: float = math.inf
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
        """Make the promise from values as users write them: ``"1%"``, ``"10 minutes"``.

        >>> Completeness.of("1%", max_wait="10 minutes").max_wait_ms
        600000.0
        """
        min_wait_ms = 0.0 if min_wait is None else units.duration_ms(min_wait, option="min_wait")
        max_wait_ms = math.inf if max_wait is None else units.duration_ms(max_wait, option="max_wait")
        if min_wait_ms > max_wait_ms:
            raise InvalidOption(
                "empty-wait-range",
                f"min_wait={min_wait!r} is more than max_wait={max_wait!r}",
                "swap them or leave one out",
            )
        idle_after_ms = (
            DEFAULT_IDLE_AFTER_MS if idle_after is None else units.duration_ms(idle_after, option="idle_after")
        )
        return cls(units.ratio(drop_ratio, option="drop_ratio"), min_wait_ms, max_wait_ms, idle_after_ms)

    def kept_by(self, late: int, on_time: int) -> bool:
        """Whether the counted rows keep the promise, without tolerance. Best effort is always kept."""
        return self.drop_ratio == 0.0 or late <= self.drop_ratio * (late + on_time)


@dataclass(frozen=True, slots=True)
class Precision:
    """An answer is within ``bound`` of the exact result, with probability ``confidence`` (``WITHIN``, ``CONFIDENCE``).

    If ``relative``, the bound is a fraction of the result. The promise costs evaluations; a bound of zero costs one
    at every tick.
    """

    bound: float
    relative: bool
    confidence: float

    @classmethod
    def of(cls, within: str | float, confidence: str | float) -> Precision:
        """Make the promise from values as users write them: ``0.5`` is an absolute bound, ``"1%"`` a relative one.

        >>> Precision.of("1%", 0.9), Precision.of(0.5, "95%").confidence
        (Precision(bound=0.01, relative=True, confidence=0.9), 0.95)
        """
        bound, relative = units.number_or_percent(within)
        if not (math.isfinite(bound) and bound >= 0.0):
            raise InvalidOption(
                "invalid-bound",
                f"within={within!r} is not a bound",
                "write 0.5, or '1%' of the answer; 0 evaluates at every tick",
            )
        probability, _ = units.number_or_percent(confidence)
        if not 0.0 < probability < 1.0:
            raise InvalidOption(
                "invalid-confidence",
                f"confidence={confidence!r} is not between 0 and 1",
                "write 0.9 or '95%'; for exact answers use a bound of 0",
            )
        return cls(bound, relative, probability)


@dataclass(frozen=True, slots=True)
class Timeliness:
    """The mean delay is at most ``max_delay_s`` (``DELAY``). The promise costs rows that are shed under overload.

    No row is shed while the load is below capacity and the delay is below the target. If a single row takes longer
    than the target, the promise cannot be kept; the controller warns and keeps the delay as low as it can.
    """

    max_delay_s: float

    @classmethod
    def of(cls, max_delay: Duration, *, option: str = "max_delay") -> Timeliness:
        """Make the promise from a duration as users write it; ``option`` is what error messages call it.

        >>> Timeliness.of("2 seconds").max_delay_s
        2.0
        """
        delay_ms = units.duration_ms(max_delay, option=option)
        if delay_ms <= 0:
            raise InvalidOption(
                "no-delay-at-all", f"{option}={max_delay!r} leaves no time for processing", "give a delay above 0"
            )
        return cls(delay_ms / units.SECOND_MS)
