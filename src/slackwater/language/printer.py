"""Prints a query as text. The text parses to an equal query."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from slackwater.language.clause import KEYWORDS
from slackwater.language.dialect import SPARK
from slackwater.language.spark_generator import FaithfulGenerator
from slackwater.language.tree import Extent, Measure, Precision, Query, UsingOption, Window, tables_of
from slackwater.language.using_clause import DURATIONS
from slackwater.names import literal, quoted, unquoted

_UNITS_MS = (
    ("week", 604_800_000.0),
    ("day", 86_400_000.0),
    ("hour", 3_600_000.0),
    ("minute", 60_000.0),
    ("second", 1000.0),
    ("millisecond", 1.0),
)
_WINDOW = "slackwater_window"


class _Generator(FaithfulGenerator):
    """Spark SQL with each window printed after its table."""

    def table_parts(self, expression: exp.Table) -> str:
        window = expression.meta.get(_WINDOW)
        parts = str(super().table_parts(expression))
        return parts if window is None else f"{parts} {print_clause(window)}"


def print_query(query: Query, *, pretty: bool = False) -> str:
    """Print a query; ``parse`` turns the text into an equal query.

    >>> from slackwater.language import parse
    >>> print_query(parse("select max(v) from S [wattr ts, range 60 seconds] within 2% confidence 95%"))
    'SELECT MAX(v) FROM S [RANGE 1 minute WATTR ts] WITHIN 2% CONFIDENCE 95%'
    """
    select = query.select.copy()
    tables = tables_of(select)
    for index, window in query.windows:
        tables[index].meta[_WINDOW] = window
    generator = _Generator(dialect=SPARK, pretty=pretty, comments=False, unsupported_level=ErrorLevel.IGNORE)
    parts = [generator.generate(select)]
    if query.with_error:
        parts.append("WITH ERROR")
    if query.precision is not None:
        parts.append(_precision(query.precision))
    return ("\n" if pretty else " ").join(parts)


def print_clause(window: Window) -> str:
    """Print a window in brackets, with its clauses in a fixed order.

    >>> print_clause(Window(range=Extent(100, Measure.TUPLES), drop_ratio=0.001))
    '[RANGE 100 tuples DRATIO 0.1%]'
    """
    parts = []
    if window.range is not None:
        parts.append(f"RANGE {print_extent(window.range)}")
    if window.landmark is not None:
        parts.append(f"LANDMARK {_landmark(window.landmark)}")
    if window.session_ms is not None:
        parts.append(f"SESSION {print_extent(Extent(window.session_ms, Measure.TIME))}")
    if window.slide is not None:
        parts.append(f"SLIDE {print_extent(window.slide)}")
    for word, column in (("WATTR", window.attribute), ("ARRIVAL", window.arrival), ("HEARTBEAT", window.heartbeat)):
        if column is not None:
            parts.append(f"{word} {_column(column)}")
    for word, columns in (("PER", window.per), ("SOURCE", window.sources)):
        if columns:
            parts.append(f"{word} {', '.join(map(_column, columns))}")
    if window.drop_ratio is not None:
        parts.append(f"DRATIO {print_percent(window.drop_ratio)}")
    if window.slack is not None:
        parts.append(f"SLACK {print_extent(window.slack)}")
    if window.delay_ms is not None:
        parts.append(f"DELAY {print_extent(Extent(window.delay_ms, Measure.TIME))}")
    if window.after_where:
        parts.append("AFTER WHERE")
    if window.shed_by is not None:
        parts.append(f"SHED BY {print_utility(window.shed_by)}")
    if window.late is not None:
        parts.append(f"LATE {window.late.name}")
    return f"[{' '.join(parts)}]"


def print_utility(utility: str) -> str:
    """Print what follows SHED BY: a column, or an expression in parentheses.

    >>> print_utility("`priority`"), print_utility("amount * 2")
    ('priority', '(amount * 2)')
    """
    column = unquoted(utility)
    return f"({utility})" if column is None else _column(column)


def print_extent(extent: Extent) -> str:
    """Print an extent in the largest unit that gives a whole number.

    >>> print_extent(Extent(90_000.0, Measure.TIME)), print_extent(Extent(60_000.0, Measure.TIME))
    ('90 seconds', '1 minute')
    """
    if extent.measure is Measure.NUMBER:
        return repr(extent.amount)
    if extent.measure is Measure.TUPLES:
        return f"{extent.amount} tuples"
    for unit, unit_ms in _UNITS_MS:
        count = extent.amount / unit_ms
        if extent.amount and count == int(count):
            return f"{int(count)} {unit}{'s' if count != 1 else ''}"
    return f"{round(extent.amount * 1000)} microseconds"


def print_percent(share: float) -> str:
    """Print a fraction as a percentage, exact to the last digit.

    >>> print_percent(0.01), print_percent(0.001)
    ('1%', '0.1%')
    """
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


def _precision(precision: Precision) -> str:
    bound = print_percent(precision.bound) if precision.relative else repr(precision.bound)
    clause = f"WITHIN {bound} CONFIDENCE {print_percent(precision.confidence)}"
    return clause + (f" USING ({', '.join(map(_using_option, precision.using))})" if precision.using else "")


def _using_option(option: UsingOption) -> str:
    if option.value is True:
        return option.name
    if option.name in DURATIONS:
        return f"{option.name} {print_extent(Extent(float(option.value), Measure.TIME))}"
    return f"{option.name} {option.value}"


def _landmark(landmark: str | float) -> str:
    return literal(landmark) if isinstance(landmark, str) else repr(landmark)


def _column(name: str) -> str:
    is_plain = re.fullmatch(r"[^\W\d]\w*", name) and name.upper() not in KEYWORDS
    return name if is_plain else quoted(name)
