"""Results that pass through our own hands on their way to the console, as a page can show them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slackwater.watching.series import MOST_SHOWN, Shown

Show = Callable[[Shown], None]
_MOST_COLUMNS = 8
_LONGEST = 40
_NEWEST_BY = ("window_end", "window")


def shown_of(rows: Iterable[Mapping[Any, Any]]) -> Shown:
    """The results of the newest windows among a micro-batch's, newest first; texts are cut short.

    >>> shown_of([{"window_end": 1, "n": 2.5}, {"window_end": 2, "n": 1e6}]).rows
    (('2', '1,000,000'), ('1', '2.5'))
    """
    every = list(rows)
    if not every:
        return Shown()
    by = next((name for name in _NEWEST_BY if name in every[0]), None)
    if by is not None and not any(row.get(by) is None for row in every):
        every.sort(key=lambda row: _place(row[by]), reverse=True)
    columns = tuple(every[0])[:_MOST_COLUMNS]
    return Shown(columns, tuple(tuple(_text(row.get(name)) for name in columns) for row in every[:MOST_SHOWN]))


def _place(value: Any) -> Any:
    """What a window is ordered by; in JSON its edges are texts, and it may be a struct."""
    return value if isinstance(value, int | float | tuple | dt.datetime) else str(value)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float | dt.datetime) and value != value):
        return "–"
    if isinstance(value, dt.datetime):
        return f"{value:%H:%M:%S}" + (f".{value.microsecond // 1000:03d}" if value.microsecond else "")
    if isinstance(value, float):
        return f"{value:,.7g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
