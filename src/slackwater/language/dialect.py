"""sqlglot's Spark dialect, changed to keep everything as it was written.

sqlglot translates between dialects and merges functions that do the same. It prints ``parse_json(x)`` as ``x``,
``max_by(a, b, 3)`` without the 3, ``percentile_cont`` as ``percentile_approx``, ``a - INTERVAL 1 DAY 2 HOURS`` as
``a - 1 day + 2 hours``, and ``DATE '2024-01-01'::STRING`` as a cast to a date. This dialect keeps a call by name if
sqlglot would print it differently, and it keeps literals as literals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from slackwater.language.spark_generator import FaithfulGenerator
from slackwater.language.spark_nodes import Intervals, Spaceship, TypedLiteral, VariantPath
from slackwater.language.spark_tokenizer import STRINGS, SparkTokens

# Synonyms in Spark. The planner knows the second name only.
SYNONYMS = {
    "APPROX_PERCENTILE": "PERCENTILE_APPROX",
    "ARRAY_AGG": "COLLECT_LIST",
}
# Aggregates that sqlglot may print as other functions, depending on their arguments or on WITHIN GROUP.
_AGGREGATES_BY_NAME = ("LISTAGG", "PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "STRING_AGG")
# Calls that sqlglot parses specially for other systems. In Spark their arguments are a plain list.
_PLAIN_CALLS = {
    "CEIL", "CHAR", "CHR", "CONVERT", "DECODE", "FLOOR", "GAP_FILL", "INITCAP", "JSON_OBJECT", "JSON_OBJECTAGG",
    "JSON_TABLE", "MATCH", "NORMALIZE", "OPENJSON", "SAFE_CAST", "TRY_CONVERT", "WEIGHT_STRING", "XMLELEMENT",
    "XMLTABLE", *exp.ArgMax.sql_names(), *exp.ArgMin.sql_names(), *_AGGREGATES_BY_NAME,
    # Hints. Their arguments are names, which sqlglot would make tables of the query.
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN", "SHUFFLEMERGE", "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL",
}  # fmt: skip
_PATH_ELEMENTS = {*STRINGS, TokenType.NUMBER, TokenType.STAR}
_LITERAL_TYPES = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}

_Builder = Callable[..., exp.Expr]


def _as_written(name: str, build: _Builder) -> _Builder:
    """Wrap ``build`` so that a node which would not print as a call of ``name`` becomes a call by name."""
    printed_name = SYNONYMS.get(name, name)

    def build_or_keep(args: list[exp.Expr], dialect: Any = None) -> exp.Expr:
        plain = exp.Anonymous(this=printed_name, expressions=[arg.copy() for arg in args])
        wanted = spark_sql(plain)
        plain.set("this", name)
        try:
            node = _build(build, args)
            if spark_sql(node) == wanted and not node.error_messages(args):
                return node
        except Exception:  # sqlglot's builders fail with many types if arguments are missing
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


class FaithfulSparkParser(SparkParser):
    """Keeps a call by name if sqlglot would print it differently."""

    FUNCTIONS: ClassVar = {
        **{name: _as_written(name, build) for name, build in SparkParser.FUNCTIONS.items() if name != "STRUCT"},
        **{name: _aggregate_by_name(name) for name in _AGGREGATES_BY_NAME},
    }
    FUNCTION_PARSERS: ClassVar = {
        name: read for name, read in SparkParser.FUNCTION_PARSERS.items() if name not in _PLAIN_CALLS
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar = set()
    EQUALITY: ClassVar = {**SparkParser.EQUALITY, TokenType.NULLSAFE_EQ: Spaceship}
    STRICT_CAST = True  # else sqlglot distinguishes CAST from TIMESTAMP '…' and prints both alike
    PRIMARY_PARSERS: ClassVar = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.RAW_STRING: lambda self, token: self.expression(exp.Literal.string(token.text), token),
    }

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        word = self._curr.text.upper()
        if word not in _LITERAL_TYPES or self._curr.token_type in STRINGS or self._next.token_type not in STRINGS:
            return super()._parse_type(parse_interval, fallback_to_identifier)
        self._advance()
        return self._parse_column_ops(self.expression(TypedLiteral(this=word, expression=self._parse_primary())))

    def _parse_types(  # the base class: SparkParser turns CHAR(n) and VARCHAR(n) into STRING
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
        row = self._parse_disjunction()  # excludes an alias: in VALUES 1, 2 AS t it belongs to the table
        return None if row is None else exp.Tuple(expressions=[row])

    def _parse_unary(self) -> exp.Expr | None:
        negative_number = self._curr.token_type == TokenType.DASH and self._next.token_type == TokenType.NUMBER
        found = super()._parse_unary()
        if not negative_number or not isinstance(found, exp.Neg) or isinstance(found.this, exp.Literal):
            return found
        # The sign belongs to the number: -1::STRING is '-1'.
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
            elif bracket and {*kinds[1:2]} <= _PATH_ELEMENTS and kinds[2:] == [TokenType.R_BRACKET]:
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
        # sqlglot would add parentheses according to its own precedence, which differs from Spark's.
        return self.expression(klass(this=this, expression=expression, **({"negate": True} if negate else {})))

    def _parse_interval(  # type: ignore[override]  # sqlglot's callers accept any expression
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Expr | None:
        if not require_interval and self._prev.token_type == TokenType.PLUS:
            return self._parse_factor()  # the next term is an operand of +, not a further unit
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
        start = self._curr
        try:
            hint = super()._parse_hint()
        except SqlglotError:
            self.raise_error("the hint cannot be parsed", start)
            return None
        for node in hint.walk() if hint is not None else ():
            node.meta.clear()  # sqlglot parses the hint as a text of its own, so the positions are wrong here
        return hint

    def _parse_hint_fallback_to_string(self) -> exp.Hint | None:
        self.raise_error("the hint is unknown")
        return None


class FaithfulSpark(SparkTokens):
    """sqlglot's Spark dialect, which prints what it parsed."""

    NORMALIZE_NOT_NULL = False

    class Tokenizer(SparkTokens.Tokenizer):
        # Since Spark 4.0, 'it''s' is one string that contains a quote, not two adjacent strings.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    Parser = FaithfulSparkParser
    Generator = FaithfulGenerator


SPARK = FaithfulSpark()


def spark_sql(node: exp.Expr, *, functions: str = "upper") -> str:
    """Print an expression or a query as Spark SQL, without windows.

    ``functions`` is the case of function names, ``"upper"`` or ``"lower"``.

    >>> spark_sql(SPARK.parse("SELECT DATE '2024-01-01', 2l")[0])
    "SELECT DATE '2024-01-01', 2L"
    """
    return str(
        node.sql(dialect=SPARK, unsupported_level=ErrorLevel.IGNORE, normalize_functions=functions, comments=False)
    )
