"""Results on their way to the console, as the live page shows them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slackwater.watching.series import MAX_RESULT_ROWS, ResultRows

Emit = Callable[[str], None]
Show = Callable[[ResultRows], None]
_MAX_COLUMNS = 8
_MAX_TEXT = 40
_WINDOW_COLUMNS = ("window_end", "window")


def result_rows(rows: Iterable[Mapping[Any, Any]]) -> ResultRows:
    """The newest windows among the rows of a micro-batch, newest first, as texts; long texts are cut.

    >>> result_rows([{"window_end": 1, "n": 2.5}, {"window_end": 2, "n": 1e6}]).rows
    (('2', '1,000,000'), ('1', '2.5'))
    """
    results = list(rows)
    if not results:
        return ResultRows()
    window = next((name for name in _WINDOW_COLUMNS if name in results[0]), None)
    if window is not None and not any(row.get(window) is None for row in results):
        results.sort(key=lambda row: _sort_key(row[window]), reverse=True)
    columns = tuple(results[0])[:_MAX_COLUMNS]
    return ResultRows(
        columns, tuple(tuple(_text(row.get(name)) for name in columns) for row in results[:MAX_RESULT_ROWS])
    )


def _sort_key(value: Any) -> Any:
    """Orders windows. A window from JSON may be a struct; its text sorts by its start."""
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
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
