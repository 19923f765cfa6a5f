"""Durations and ratios as people write them, converted to numbers at the edges of the program, and back to text.

Inside the program a time is a number of milliseconds (``_ms``), seconds (``_s``) or microseconds (``_us``), and a
ratio is a fraction of one (``_ratio``).
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
SECOND_MS = 1e3
"""Milliseconds in a second; the constants below are milliseconds too."""
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_UNIT_MS = {
    "microsecond": 0.001,
    "us": 0.001,
    "µs": 0.001,
    "millisecond": 1.0,
    "ms": 1.0,
    "second": SECOND_MS,
    "sec": SECOND_MS,
    "s": SECOND_MS,
    "minute": MINUTE_MS,
    "min": MINUTE_MS,
    "m": MINUTE_MS,
    "hour": HOUR_MS,
    "h": HOUR_MS,
    "day": DAY_MS,
    "d": DAY_MS,
    "week": 7 * DAY_MS,
}
_AMOUNT_AND_UNIT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµ]+)\s*,?", re.IGNORECASE)


def duration_ms(value: str | float | dt.timedelta, *, option: str = "duration") -> float:
    """Convert ``"10 minutes"``, ``"1 minute 30 seconds"``, ``"250ms"``, a timedelta, or a number of seconds.

    ``option`` is the name that the error message gives to the value. Raises ``InvalidOption`` if the value is not a
    duration, is negative or is not finite.

    >>> duration_ms("10 minutes"), duration_ms("interval 1 minute 30 seconds"), duration_ms(1.5)
    (600000.0, 90000.0, 1500.0)
    """
    if isinstance(value, dt.timedelta):
        result = value / dt.timedelta(milliseconds=1)
    elif isinstance(value, bool):
        raise _bad_duration(value, option)
    elif isinstance(value, int | float):
        result = float(value) * SECOND_MS
    else:
        result = _parse_duration(value, option)
    if not math.isfinite(result) or result < 0:
        raise _bad_duration(value, option)
    return result


def _parse_duration(text: str, option: str) -> float:
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total, end = 0.0, 0
    while end < len(rest.rstrip()):
        part = _AMOUNT_AND_UNIT.match(rest, end)
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
    """Convert ``"1%"`` or ``0.01`` to a fraction in [0, 1).

    ``option`` is the name that the error message gives to the value. Raises ``InvalidOption`` for anything else.

    >>> ratio("0.5%"), ratio(0.01)
    (0.005, 0.01)
    """
    number, _ = number_or_percent(value)
    if not 0.0 <= number < 1.0:
        raise InvalidOption(
            "invalid-ratio",
            f"{option}={value!r} is not a ratio in [0, 1)",
            "write 0.01 or '1%'; 0 means best effort, without a promise",
        )
    return number


def number_or_percent(value: str | float) -> tuple[float, bool]:
    """The number that ``value`` stands for, and whether it was written as a percentage.

    The number is NaN if ``value`` is not a number; a boolean is not a number.

    >>> number_or_percent("5%"), number_or_percent("0.5"), number_or_percent("lots")
    ((0.05, True), (0.5, False), (nan, False))
    """
    text = value.strip() if isinstance(value, str) else value
    is_percent = isinstance(text, str) and text.endswith("%")
    if isinstance(text, bool):
        return math.nan, False
    try:
        return (float(str(text).removesuffix("%")) / 100.0, True) if is_percent else (float(text), False)
    except (TypeError, ValueError):
        return math.nan, is_percent


def percent(fraction: float) -> str:
    """A ratio as text with four significant digits.

    >>> percent(0.01), percent(0.00125), percent(0.0)
    ('1%', '0.125%', '0%')
    """
    return f"{100 * fraction:.4g}%"


def duration_text(ms: float) -> str:
    """Milliseconds as text, in the unit that fits; a dash if the number is not finite.

    >>> duration_text(250), duration_text(1234), duration_text(90_000), duration_text(7_200_000), duration_text(1e11)
    ('250 ms', '1.23 s', '1.5 min', '2 h', '1,157 d')
    """
    if not math.isfinite(ms):
        return "–"
    size = abs(ms)
    if size < SECOND_MS:
        return f"{ms:.3g} ms"
    if size < MINUTE_MS:
        return f"{ms / SECOND_MS:.3g} s"
    if size < HOUR_MS:
        return f"{ms / MINUTE_MS:.3g} min"
    if size < DAY_MS:
        return f"{ms / HOUR_MS:.3g} h"
    return f"{ms / DAY_MS:,.0f} d" if size >= 100 * DAY_MS else f"{ms / DAY_MS:.3g} d"
