"""Durations, ratios and sizes as people write them, turned into numbers once, at the edges.

Inside, times are milliseconds (``_ms``) or seconds (``_s``) and ratios are fractions of one (``_ratio``).
"""

from __future__ import annotations

import datetime as dt
import math
import re

from slackwater.errors import InvalidOption

MS_US = 1_000
"""Microseconds in a millisecond."""
DAY_US = 86_400_000_000
"""Microseconds in a day."""

_UNIT_MS = {
    "microsecond": 0.001,
    "us": 0.001,
    "µs": 0.001,
    "millisecond": 1.0,
    "ms": 1.0,
    "second": 1e3,
    "sec": 1e3,
    "s": 1e3,
    "minute": 6e4,
    "min": 6e4,
    "m": 6e4,
    "hour": 3.6e6,
    "h": 3.6e6,
    "day": 8.64e7,
    "d": 8.64e7,
    "week": 6.048e8,
}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµ]+)\s*,?", re.IGNORECASE)


def duration_ms(value: str | float | dt.timedelta, *, option: str = "duration") -> float:
    """Milliseconds from ``"10 minutes"``, ``"1 minute 30 seconds"``, ``"250ms"``, a timedelta, or seconds as a number.

    >>> duration_ms("10 minutes"), duration_ms("interval 1 minute 30 seconds"), duration_ms(1.5)
    (600000.0, 90000.0, 1500.0)
    """
    if isinstance(value, dt.timedelta):
        result = value / dt.timedelta(milliseconds=1)
    elif isinstance(value, bool):
        raise _bad_duration(value, option)
    elif isinstance(value, int | float):
        result = float(value) * 1e3
    else:
        result = _parse_duration(value, option)
    if not math.isfinite(result) or result < 0:
        raise _bad_duration(value, option)
    return result


def _parse_duration(text: str, option: str) -> float:
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total, end = 0.0, 0
    while end < len(rest.rstrip()):
        part = _PART.match(rest, end)
        if part is None:
            raise _bad_duration(text, option)
        unit = part[2].lower()
        unit_ms = _UNIT_MS.get(unit) or _UNIT_MS.get(unit.removesuffix("s"))
        if unit_ms is None:
            raise _bad_duration(text, option)
        total += float(part[1]) * unit_ms
        end = part.end()
    if end == 0:
        raise _bad_duration(text, option)
    return total


def _bad_duration(value: object, option: str) -> InvalidOption:
    return InvalidOption(
        "invalid-duration",
        f"{option}={value!r} is not a duration",
        "write it as Spark does ('10 minutes', '250 milliseconds'), as a timedelta, or as seconds",
    )


def ratio(value: str | float, *, option: str = "ratio") -> float:
    """A fraction in [0, 1) from ``"1%"`` or ``0.01``.

    >>> ratio("0.5%"), ratio(0.01)
    (0.005, 0.01)
    """
    number = math.nan
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            number = math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if not 0.0 <= number < 1.0:
        raise InvalidOption(
            "invalid-ratio",
            f"{option}={value!r} is not a ratio in [0, 1)",
            "write 0.01 or '1%'; 0 means best effort, without a promise",
        )
    return number


def percent(fraction: float) -> str:
    """A ratio as a person reads it, never rounded to a promise that was not kept.

    >>> percent(0.01), percent(0.00125), percent(0.0)
    ('1%', '0.125%', '0%')
    """
    return f"{100 * fraction:.4g}%"


def duration_text(ms: float) -> str:
    """Milliseconds as a person reads them.

    >>> duration_text(250), duration_text(1234), duration_text(90_000), duration_text(7_200_000)
    ('250 ms', '1.23 s', '1.5 min', '2 h')
    """
    if not math.isfinite(ms):
        return "–"
    size = abs(ms)
    if size < 1e3:
        return f"{ms:.3g} ms"
    if size < 6e4:
        return f"{ms / 1e3:.3g} s"
    if size < 3.6e6:
        return f"{ms / 6e4:.3g} min"
    if size < 8.64e7:
        return f"{ms / 3.6e6:.3g} h"
    return f"{ms / 8.64e7:.3g} d"
