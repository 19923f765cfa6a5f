"""The type of an expression, and what Spark would refuse in it: calls and operators of types that they do not take."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from functools import reduce
from typing import NoReturn

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.language.spark_nodes import TypedLiteral
from slackwater.plan.functions import is_aggregate
from slackwater.plan.select_checks import GENERATORS
from slackwater.plan.sql_types import (
    CONDITION,
    NAMES,
    UNKNOWN,
    class_of_type,
    most_arguments,
    names_of,
    pair,
    signatures,
)
from slackwater.plan.text_positions import node_error

ClassOf = Callable[[exp.Expr], str]
"""The class of a part of an expression."""

_COMPARED = {
    exp.EQ: "=", exp.NEQ: "=", exp.NullSafeEQ: "=", exp.LT: "<", exp.LTE: "<", exp.GT: "<", exp.GTE: "<",
    exp.Like: "LIKE", exp.And: "AND", exp.Or: "AND",
}  # fmt: skip
_COMPUTED = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||", exp.IntDiv: "DIV",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "&", exp.BitwiseXor: "&",
}  # fmt: skip
_DAY_UNITS = {"DAY", "DAYS", "HOUR", "HOURS", "MINUTE", "MINUTES", "SECOND", "SECONDS", "WEEK", "WEEKS"}
_SIGNED = "ilcdsv" + UNKNOWN
_NUMBERS = "ilcd"
_CASTS = {
    **dict.fromkeys(_NUMBERS, _NUMBERS + "stbv"), "s": _NUMBERS + "stnebvx", "e": "setn", "t": _NUMBERS + "setn",
    "n": "setn", "v": _NUMBERS + "sv", "b": _NUMBERS + "sb", "x": "sx", "a": "sa", "m": "sm", "r": "sr",
}  # fmt: skip
"""By class: the classes that Spark casts it to."""
_LITERAL_ARGUMENTS = {"round": 1, "bround": 1, "percentile_approx": 1, "approx_percentile": 1, "percentile": 1,
                      "from_json": 1, "from_csv": 1, "approx_count_distinct": 1}  # fmt: skip
"""Calls, and which argument (counted from 0) is the same for all rows."""
_TYPED_LITERALS = {"DATE": "e", "TIMESTAMP": "t", "TIMESTAMP_LTZ": "t", "TIMESTAMP_NTZ": "n", "X": "x"}
_TYPE_CALLS = {
    "bigint": "l", "binary": "x", "boolean": "b", "date": "e", "decimal": "c", "double": "d", "float": "d", "int": "i",
    "smallint": "i", "string": "s", "timestamp": "t", "tinyint": "i",
}  # fmt: skip
_EXAMPLES = {"DATE": "2026-01-05", "TIMESTAMP": "2026-01-05 08:00:00"}
_SPECIAL_TIMES = {"epoch", "now", "today", "tomorrow", "yesterday"}
_DATE = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?$")
_RANKS = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value"}
_RANDOM = {"rand", "random", "randn", "uuid", "uniform", "randstr", "monotonically_increasing_id", "shuffle"}
_OF_ONE_TYPE = {"coalesce", "nvl", "ifnull", "least", "greatest", "array"}
"""Calls whose arguments have a type in common, which is that of the result, but for ``array``."""
_OVER_PARTS = {"exists": "a", "forall": "a", "filter": "a", "transform": "a", "aggregate": "a", "reduce": "a",
               "zip_with": "a", "map_filter": "m", "transform_keys": "m", "transform_values": "m"}  # fmt: skip
"""Calls with a lambda, and the class of what they go through."""
_WORDS = {exp.EQ: "=", exp.NEQ: "!=", exp.And: "AND", exp.Or: "OR", exp.Like: "LIKE"}


class TypeCheck:
    """Finds the class of expressions of one query, and refuses what Spark would refuse; unknown types pass."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def class_of(self, node: exp.Expr, of: ClassOf) -> str:
        """The class of a node, from the classes of its parts, which are already checked."""
        if isinstance(node, exp.Anonymous):
            return self._class_of_call(node, of)
        if isinstance(node, exp.Binary):
            return self._class_of_operator(node, of)
        if isinstance(node, exp.Not):
            self.require_condition(node.this, of, "NOT")
            return "b"
        if isinstance(node, exp.Between):
            for limit in (node.args["low"], node.args["high"]):
                self._require_pair("<", node.this, limit, "BETWEEN", of)
            return "b"
        if isinstance(node, exp.In):
            for value in node.expressions:
                self._require_pair("=", node.this, value, "IN", of)
            return "b"
        if isinstance(node, exp.Case) or (isinstance(node, exp.If) and not isinstance(node.parent, exp.Case)):
            return self._class_of_case(node, of)
        if isinstance(node, exp.Filter):
            self.require_condition(node.expression.this, of, "FILTER (WHERE …)")
        if isinstance(node, exp.Transform):
            self._require_parts(node, "transform", node.this, of)
            return "a"
        if isinstance(node, exp.Bracket):
            return self._class_of_element(node, of)
        if isinstance(node, exp.Neg) and of(node.this) not in _SIGNED:
            problem = f"- does not take {spark_sql(node.this)} of type {NAMES[of(node.this)]}"
            self._refuse(node.this, "wrong-type", problem, "use a number")
        if isinstance(node, exp.Predicate):
            return "b"
        return self._class_of_leaf(node, of)

    def require_condition(self, node: exp.Expr, of: ClassOf, place: str) -> None:
        """Refuse what is not a condition, such as ``WHERE price``."""
        found = of(node)
        if found not in CONDITION:
            problem = f"{place} needs a condition, and {spark_sql(node)} is of type {NAMES[found]}"
            self._refuse(node, "wrong-type", problem, "compare it, as in x > 0 or x = 'a'")

    def _class_of_element(self, node: exp.Bracket, of: ClassOf) -> str:
        """``tags[0]``: an element of an array or a map, or a field of a struct."""
        whole, place = of(node.this), node.expressions[0]
        if whole not in "amr" + UNKNOWN:
            problem = f"{spark_sql(node.this)} is of type {NAMES[whole]}, so it has no element {spark_sql(place)}"
            self._refuse(node.this, "wrong-type", problem, "use an array, a map or a struct")
        if whole == "a" and of(place) not in "il" + UNKNOWN:
            problem = f"{spark_sql(place)} of type {NAMES[of(place)]} is not the number of an element"
            self._refuse(place, "wrong-type", problem, "the first element is 0")
        return UNKNOWN

    def _require_parts(self, call: exp.Expr, name: str, whole: exp.Expr, of: ClassOf) -> None:
        """Refuse ``FILTER(price, x -> …)``."""
        wanted = _OVER_PARTS[name]
        if of(whole) not in (wanted, UNKNOWN):
            problem = f"{name} does not take {spark_sql(whole)} of type {NAMES[of(whole)]}"
            self._refuse(whole, "wrong-type", problem, f"give {names_of(wanted)}")

    def _class_of_leaf(self, node: exp.Expr, of: ClassOf) -> str:
        if isinstance(node, exp.Literal):
            return _class_of_literal(node)
        if isinstance(node, exp.Boolean):
            return "b"
        if isinstance(node, exp.Cast):
            self._check_cast(node, of(node.this))
            return class_of_type(node.to)
        if isinstance(node, exp.Extract) and of(node.expression) not in "stnev" + UNKNOWN:
            problem = f"EXTRACT does not take {spark_sql(node.expression)} of type {NAMES[of(node.expression)]}"
            self._refuse(node.expression, "wrong-type", problem, "give a time, or cast it")
        if isinstance(node, TypedLiteral):
            self._check_literal(node)
            return _TYPED_LITERALS.get(str(node.this).upper(), UNKNOWN)
        if isinstance(node, exp.CurrentDate):
            return "e"
        if isinstance(node, exp.CurrentTimestamp):
            return "t"
        if isinstance(node, exp.Interval):
            unit = node.args.get("unit")
            return "v" if isinstance(unit, exp.Var) and unit.name.upper() in _DAY_UNITS else UNKNOWN
        if isinstance(node, exp.Paren | exp.Alias | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window):
            return of(node.this)
        return UNKNOWN

    def _check_cast(self, cast: exp.Cast, given: str) -> None:
        """Refuse ``CAST(price AS DATE)``."""
        wanted = class_of_type(cast.to)
        if UNKNOWN not in (given, wanted) and wanted not in _CASTS[given]:
            problem = f"Spark cannot cast {spark_sql(cast.this)} of type {NAMES[given]} to {NAMES[wanted]}"
            self._refuse(cast.this, "wrong-type", problem, f"it casts to {names_of(_CASTS[given])}")

    def _check_literal(self, literal: TypedLiteral) -> None:
        """Refuse ``DATE '204-01-01'``."""
        kind, value = str(literal.this).upper(), literal.expression
        if kind in ("DATE", "TIMESTAMP") and isinstance(value, exp.Literal) and not is_time(kind, value.name):
            problem = f"{value.name!r} is no {kind.lower()}"
            self._refuse(literal, "wrong-literal", problem, f"write {kind} '{_EXAMPLES[kind]}'")

    def _class_of_operator(self, node: exp.Binary, of: ClassOf) -> str:
        kind = type(node)
        if kind in _COMPARED:
            word = _WORDS.get(kind, spark_sql(node)[len(spark_sql(node.this)) :].split()[0])
            self._require_pair(_COMPARED[kind], node.this, node.expression, word, of)
            return "b"
        if kind in _COMPUTED:
            return self._require_pair(_COMPUTED[kind], node.this, node.expression, _COMPUTED[kind], of)
        return "b" if isinstance(node, exp.Predicate) else UNKNOWN

    def _require_pair(self, operator: str, left: exp.Expr, right: exp.Expr, word: str, of: ClassOf) -> str:
        first, second = of(left), of(right)
        found = pair(operator, first, second)
        if found is None:
            problem = (
                f"{word} does not take {spark_sql(left)} of type {NAMES[first]} and {spark_sql(right)} of type "
                f"{NAMES[second]}"
            )
            self._refuse(left, "wrong-type", problem, "cast one of them, or use another column")
        return found

    def _class_of_case(self, node: exp.Case | exp.If, of: ClassOf) -> str:
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        operand = node.this if isinstance(node, exp.Case) else None
        values = []
        for branch in branches:
            if operand is None:
                self.require_condition(branch.this, of, "CASE WHEN" if isinstance(node, exp.Case) else "IF")
            else:
                self._require_pair("=", operand, branch.this, "CASE", of)
            values.append(branch.args.get("true"))
        last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        return self._common([value for value in (*values, last) if isinstance(value, exp.Expr)], "CASE", of)

    def _common(self, values: list[exp.Expr], word: str, of: ClassOf) -> str:
        """The class that the values of a CASE, or the arguments of a call, have in common."""
        known = [value for value in values if of(value) != UNKNOWN]
        for value in known[1:]:
            self._require_pair("case", known[0], value, word, of)
        classes = [of(value) for value in known]
        return reduce(lambda left, right: pair("case", left, right) or UNKNOWN, classes) if classes else UNKNOWN

    def _class_of_call(self, call: exp.Anonymous, of: ClassOf) -> str:
        name = call.name.lower()
        arguments: list[exp.Expr] = []
        for argument in call.expressions:
            arguments += argument.expressions if isinstance(argument, exp.Distinct) else [argument]
        self._check_place(call, name)
        if isinstance(call.parent, exp.WithinGroup):
            return UNKNOWN  # what it takes stands in WITHIN GROUP too
        if any(isinstance(a, exp.Star | exp.Kwarg | exp.PropertyEQ | exp.Var) or a.is_star for a in arguments):
            return "l" if name == "count" else UNKNOWN
        if name in _TYPE_CALLS:
            return _TYPE_CALLS[name]
        if name in _OVER_PARTS and arguments:
            self._require_parts(call, name, arguments[0], of)
        common = self._common(arguments, name, of) if name in _OF_ONE_TYPE else UNKNOWN
        known = signatures(name)
        if not known or len(arguments) > most_arguments():
            return common if name != "array" else "a"
        found = known.get(len(arguments))
        if found is None:
            self._refuse_count(call, sorted(known), len(arguments))
        place = _LITERAL_ARGUMENTS.get(name, len(arguments))
        for argument in arguments[place : place + 1]:
            if argument.find(exp.Column) is not None:
                problem = f"{spark_sql(argument)} differs from row to row, and {name} takes one value for all rows"
                self._refuse(argument, "not-constant", problem, "write a number or a text")
        classes = [of(argument) for argument in arguments]
        for argument, letter, accepted in zip(arguments, classes, found.accepted, strict=True):
            if letter != UNKNOWN and accepted != "*" and letter not in accepted:
                takes = names_of(accepted)
                problem = f"{name} does not take {spark_sql(argument)} of type {NAMES[letter]}"
                remedy = f"give {takes}, or cast it" if takes else "use another function"
                self._refuse(argument, "wrong-type", problem, remedy)
        return common if name in _OF_ONE_TYPE and name != "array" else found.result_of(classes)

    def _check_place(self, call: exp.Anonymous, name: str) -> None:
        over = call.parent
        while isinstance(over, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            over = over.parent
        if name in _RANKS and not isinstance(over, exp.Window):
            self._refuse(call, "no-over", f"{name} needs OVER", "write OVER (PARTITION BY window_end ORDER BY …)")
        outside = call.parent.parent if isinstance(call.parent, exp.Alias | exp.Aliases) else call.parent
        if name in GENERATORS and not isinstance(outside, exp.Select | exp.Lateral):
            problem = f"{name} makes rows, so it cannot be a part of an expression"
            self._refuse(call, "misplaced-generator", problem, f"write LATERAL VIEW {name}(…) t AS x")
        if not is_aggregate(call) or isinstance(over, exp.Window) or self.query.precision is not None:
            return  # MAX(AVG(…)) is the extreme of a standing query
        select = call.find_ancestor(exp.Select)
        for inner in call.find_all(exp.Anonymous):
            if inner.name.lower() in _RANDOM and inner.find_ancestor(exp.Select) is select:
                problem = f"{spark_sql(inner)} gives other values each time, which an aggregate does not take"
                self._refuse(inner, "random-aggregate", problem, "remove it")
            if inner is not call and is_aggregate(inner) and inner.find_ancestor(exp.Select) is select:
                problem = f"{spark_sql(inner)} is an aggregate inside an aggregate"
                self._refuse(inner, "nested-aggregate", problem, "compute the inner one in a subquery")

    def _refuse_count(self, call: exp.Anonymous, counts: list[int], found: int) -> NoReturn:
        takes = " or ".join(map(str, counts))
        noun = "argument" if counts == [1] else "arguments"
        more = " or more" if counts[-1] == most_arguments() else ""
        problem = f"{call.name.lower()} takes {takes}{more} {noun}, not {found}"
        self._refuse(call, "wrong-arguments", problem, "correct the call")

    def _refuse(self, node: exp.Expr, condition: str, problem: str, remedy: str) -> NoReturn:
        raise node_error(self.query, node, condition, problem, remedy, length=len(spark_sql(node)))


def is_time(kind: str, text: str) -> bool:
    """Whether Spark may read the text as a DATE or TIMESTAMP; it may not if this is false.

    >>> is_time("DATE", "2026-01-05"), is_time("DATE", "204-01-01"), is_time("TIMESTAMP", "2026-02-30 08:00")
    (True, False, False)
    """
    text = text.strip()
    if text.lower() in _SPECIAL_TIMES or (kind == "TIMESTAMP" and ":" in text[:9]):
        return True
    found = _DATE.match(text)
    if found is None:
        return False
    year, month, day = (int(part or 1) for part in found.groups())
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(min(max(year, 1), 9999), month)[1]


def _class_of_literal(literal: exp.Literal) -> str:
    if literal.is_string:
        return "s"
    text = literal.name.upper()
    if text.isdigit():
        return "i" if int(text) < 2**31 else "l"
    endings = {"L": "l", "S": "i", "Y": "i", "D": "d", "F": "d"}
    if text.endswith("BD"):
        return "c"
    return endings.get(text[-1], "d" if "E" in text else "c")
