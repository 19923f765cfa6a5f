"""Spark SQL as sqlglot reads it, with everything kept as it was written.

sqlglot translates between dialects and has one name for what several functions do: ``parse_json(x)`` comes out as
``x``, ``max_by(a, b, 3)`` without its 3, ``percentile_cont`` as ``percentile_approx``, ``a - INTERVAL 1 DAY 2
HOURS`` as ``a - 1 day + 2 hours``, and ``DATE '2024-01-01'::STRING`` as a cast to a date. Here a call that would not be
printed as it stood stays a call by name, and literals stay literals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from slackwater.language.nodes import Intervals, Spaceship, TypedLiteral, VariantPath
from slackwater.language.spelling import FaithfulGenerator
from slackwater.language.tokens import TEXTS, SparkTokens

# Names that Spark has for one function: the plan knows the second.
SYNONYMS = {
    "APPROX_PERCENTILE": "PERCENTILE_APPROX",
    "ARRAY_AGG": "COLLECT_LIST",
}
# Aggregates that sqlglot prints as others, by what stands behind or between their arguments (WITHIN GROUP, …).
_AGGREGATES_BY_NAME = ("LISTAGG", "PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "STRING_AGG")
# Calls that sqlglot reads by a way of their own, for other systems: in Spark their arguments are a plain list.
_PLAIN_CALLS = {
    "CEIL", "CHAR", "CHR", "CONVERT", "DECODE", "FLOOR", "GAP_FILL", "INITCAP", "JSON_OBJECT", "JSON_OBJECTAGG",
    "JSON_TABLE", "MATCH", "NORMALIZE", "OPENJSON", "SAFE_CAST", "TRY_CONVERT", "WEIGHT_STRING", "XMLELEMENT",
    "XMLTABLE", *exp.ArgMax.sql_names(), *exp.ArgMin.sql_names(), *_AGGREGATES_BY_NAME,
    # In a hint, whose names are no tables of the query.
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN", "SHUFFLEMERGE", "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL",
}  # fmt: skip
_IN_A_PATH = {*TEXTS, TokenType.NUMBER, TokenType.STAR}
_BEFORE_A_TEXT = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}

_Builder = Callable[..., exp.Expr]


def _as_written(name: str, build: _Builder) -> _Builder:
    """``build``, unless what it makes of the arguments would be printed as another call than ``name``."""
    said = SYNONYMS.get(name, name)

    def build_or_keep(args: list[exp.Expr], dialect: Any = None) -> exp.Expr:
        plain = exp.Anonymous(this=said, expressions=[arg.copy() for arg in args])
        wanted = spark_sql(plain)
        plain.set("this", name)
        try:
            node = _build(build, args)
            if spark_sql(node) == wanted and not node.error_messages(args):
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
    EQUALITY: ClassVar = {**SparkParser.EQUALITY, TokenType.NULLSAFE_EQ: Spaceship}
    STRICT_CAST = True  # or CAST and TIMESTAMP '…', which are printed alike, would be two things
    PRIMARY_PARSERS: ClassVar = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.RAW_STRING: lambda self, token: self.expression(exp.Literal.string(token.text), token),
    }

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        word = self._curr.text.upper()
        if word not in _BEFORE_A_TEXT or self._curr.token_type in TEXTS or self._next.token_type not in TEXTS:
            return super()._parse_type(parse_interval, fallback_to_identifier)
        self._advance()
        return self._parse_column_ops(self.expression(TypedLiteral(this=word, expression=self._parse_primary())))

    def _parse_types(  # CHAR(n) and VARCHAR(n) are what Spark makes of them, not texts of any length
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        return Parser._parse_types(self, check_func, schema, allow_identifiers, with_collation)

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        if self._curr.token_type == TokenType.L_PAREN:
            return super()._parse_value(values)
        row = self._parse_disjunction()  # and no alias: in VALUES 1, 2 AS t that is the table's
        return None if row is None else exp.Tuple(expressions=[row])

    def _parse_unary(self) -> exp.Expr | None:
        of_number = self._curr.token_type == TokenType.DASH and self._next.token_type == TokenType.NUMBER
        found = super()._parse_unary()
        if not of_number or not isinstance(found, exp.Neg) or isinstance(found.this, exp.Literal):
            return found
        # A sign before a number is the number's own: -1::STRING is '-1'.
        whole: exp.Expr = found.this
        number = whole
        while not isinstance(number, exp.Literal):
            number = number.this
        number.replace(exp.Neg(this=number.copy()))
        return whole

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        found = super()._parse_column_ops(this)
        while self._match(TokenType.COLON):
            found = super()._parse_column_ops(VariantPath(this=found, expressions=self._parse_variant_path()))
        return found

    def _parse_variant_path(self) -> list[exp.Expr | None]:
        parts: list[exp.Expr | None] = []
        while True:
            kinds = [token.token_type for token in self._tokens[self._index : self._index + 3]]
            bracket = kinds[:1] == [TokenType.L_BRACKET]
            if self._match(TokenType.DOT) or (not parts and not bracket):
                parts.append(self._parse_id_var(any_token=True))
            elif bracket and {*kinds[1:2]} <= _IN_A_PATH and kinds[2:] == [TokenType.R_BRACKET]:
                self._advance()
                parts.append(exp.Star() if self._match(TokenType.STAR) else self._parse_primary())
                self._advance()
            else:
                return parts

    def _build_predicate(
        self,
        klass: type[exp.Binary],
        this: exp.Expr | None,
        expression: exp.Expr | None,
        comments: list[str] | None = None,
        negate: bool = False,
    ) -> exp.Expr:
        # sqlglot adds parentheses by an order of its own; without them Spark reads the words in its order again.
        return self.expression(klass(this=this, expression=expression, **({"negate": True} if negate else {})))

    def _parse_interval(  # type: ignore[override]  # sqlglot asks for no more than an expression
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Expr | None:
        if not require_interval and self._prev.token_type == TokenType.PLUS:
            return self._parse_factor()  # what follows is added, and no further unit
        found = super()._parse_interval(require_interval, parse_function_unit)
        if not require_interval:
            return found
        rest: exp.Expr | None = found
        units: list[exp.Expr] = []
        while isinstance(rest, exp.Add):
            units.append(rest.this)
            rest = rest.expression
        if not units:
            return found
        if isinstance(rest, exp.Interval):
            units.append(rest)
            rest = None
        whole = units[0] if len(units) == 1 else Intervals(expressions=units)
        return whole if rest is None else exp.Add(this=whole, expression=rest)

    def _parse_hint(self) -> exp.Hint | None:
        place = self._curr
        try:
            hint = super()._parse_hint()
        except SqlglotError:
            self.raise_error("this hint cannot be read", place)
            return None
        for node in hint.walk() if hint is not None else ():
            node.meta.clear()  # its places are those in the hint, which sqlglot reads as a text of its own
        return hint

    def _parse_hint_fallback_to_string(self) -> exp.Hint | None:
        self.raise_error("what is not understood is not handed to Spark")
        return None


class FaithfulSpark(SparkTokens):
    """sqlglot's Spark dialect, which keeps what it reads."""

    NORMALIZE_NOT_NULL = False

    class Tokenizer(SparkTokens.Tokenizer):
        # Since Spark 4.0 'it''s' is one string with a quote in it, not two strings side by side.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    Parser = _Parser
    Generator = FaithfulGenerator


SPARK = FaithfulSpark()


def spark_sql(node: exp.Expr, *, functions: str = "upper") -> str:
    """An expression or a query as Spark SQL, without windows; ``functions`` is the case of their names.

    >>> spark_sql(SPARK.parse("SELECT DATE '2024-01-01', 2l")[0])
    "SELECT DATE '2024-01-01', 2L"
    """
    said = node.sql(dialect=SPARK, unsupported_level=ErrorLevel.IGNORE, normalize_functions=functions, comments=False)
    return str(said)
