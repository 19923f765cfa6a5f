"""Spark SQL as sqlglot reads it, with every call kept as it was written.

sqlglot translates between dialects and has one name for what several functions do: ``parse_json(x)`` comes out as
``x``, ``max_by(a, b, 3)`` without its 3, ``percentile_cont`` as ``percentile_approx``, and ``a - INTERVAL 1 DAY 2
HOURS`` as ``a - 1 day + 2 hours``. Here a call that would not be printed as it stood stays a call by name, and an
interval of several units stands in parentheses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from slackwater.language.window_function import SparkWithWindowFunction

# Names that Spark has for one function: the plan knows the second.
SYNONYMS = {
    "APPROX_PERCENTILE": "PERCENTILE_APPROX",
    "ARRAY_AGG": "COLLECT_LIST",
    "CHARACTER_LENGTH": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "LEN": "LENGTH",
    "SUBSTR": "SUBSTRING",
}
# Aggregates that sqlglot prints as others, by what stands behind or between their arguments (WITHIN GROUP, …).
_AGGREGATES_BY_NAME = ("LISTAGG", "PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "STRING_AGG")
# Calls that sqlglot reads by a way of their own, for other systems: in Spark their arguments are a plain list.
_PLAIN_CALLS = {
    "CEIL", "CHAR", "CHR", "CONVERT", "DECODE", "FLOOR", "GAP_FILL", "INITCAP", "JSON_OBJECT", "JSON_OBJECTAGG",
    "JSON_TABLE", "MATCH", "NORMALIZE", "OPENJSON", "SAFE_CAST", "TRY_CONVERT", "WEIGHT_STRING", "XMLELEMENT",
    "XMLTABLE", *exp.ArgMax.sql_names(), *exp.ArgMin.sql_names(), *_AGGREGATES_BY_NAME,
}  # fmt: skip

_Builder = Callable[..., exp.Expr]


def _as_written(name: str, build: _Builder) -> _Builder:
    """``build``, unless what it makes of the arguments would be printed as another call than ``name``."""
    said = SYNONYMS.get(name, name)

    def build_or_keep(args: list[exp.Expr], dialect: Any = None) -> exp.Expr:
        plain = exp.Anonymous(this=said, expressions=[arg.copy() for arg in args])
        wanted = str(plain.sql(dialect="spark"))
        plain.set("this", name)
        try:
            node = _build(build, args)
            printed = str(node.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE))
            if printed == wanted and not node.error_messages(args):
                return node
        except Exception:  # sqlglot's builders index arguments that may be missing
            return plain
        if isinstance(node, exp.AggFunc):
            return exp.AnonymousAggFunc(this=name, expressions=plain.expressions)
        return plain

    return build_or_keep


def _aggregate_by_name(name: str) -> _Builder:
    return lambda args: exp.AnonymousAggFunc(this=name, expressions=args)


def _build(build: _Builder, args: list[exp.Expr]) -> exp.Expr:
    try:
        return build(args)
    except TypeError:
        return build(args, dialect=SPARK)


class _Parser(SparkParser):
    FUNCTIONS: ClassVar = {
        **{name: _as_written(name, build) for name, build in SparkParser.FUNCTIONS.items() if name != "STRUCT"},
        **{name: _aggregate_by_name(name) for name in _AGGREGATES_BY_NAME},
    }
    FUNCTION_PARSERS: ClassVar = {
        name: read for name, read in SparkParser.FUNCTION_PARSERS.items() if name not in _PLAIN_CALLS
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar = set()
    STRICT_CAST = True  # or CAST and TIMESTAMP '…', which are printed alike, would be two things
    PRIMARY_PARSERS: ClassVar = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.RAW_STRING: lambda self, token: self.expression(exp.Literal.string(token.text), token),
    }

    def _parse_interval(  # type: ignore[override]  # sqlglot asks for no more than an expression
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Expr | None:
        interval = super()._parse_interval(require_interval, parse_function_unit)
        # The rest of a sum is read by this method too: only the whole needs parentheses.
        if not isinstance(interval, exp.Add) or not require_interval:
            return interval
        units: list[exp.Expr] = []
        while isinstance(interval, exp.Add):
            units.append(interval.this)
            interval = interval.expression
        # A sum is read from the left where it is read again.
        return exp.Paren(
            this=functools.reduce(lambda left, right: exp.Add(this=left, expression=right), [*units, interval])
        )


class FaithfulSpark(SparkWithWindowFunction):
    """sqlglot's Spark dialect, which keeps what it reads."""

    class Tokenizer(SparkWithWindowFunction.Tokenizer):
        # Since Spark 4.0 'it''s' is one string with a quote in it, not two strings side by side.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    Parser = _Parser


SPARK = FaithfulSpark()
