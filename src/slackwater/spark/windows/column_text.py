"""The Spark SQL text of a Column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

from pyspark.sql import Column
from pyspark.sql.types import BooleanType, DataType, FractionalType, IntegralType, StringType

from slackwater.errors import InvalidOption
from slackwater.names import quoted

_INFIX = {"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "<=>", "and", "or"}


def column_text(column: Column) -> str:
    """The text from which Spark would make this Column.

    Classic Spark has it. A client of Spark Connect has a tree: columns, literals, functions, operators and aliases are
    written out, and anything else is refused.
    """
    classic: Any = column
    if not hasattr(classic, "_jc"):
        return _text(classic._expr, column)
    node = classic._jc.node()
    # Spark prints names without the quotes that they need.
    return str(node.sql()) if all(map(str.isidentifier, _names(node))) else _classic_text(node, column)


def _names(node: Any) -> Iterator[str]:
    """The names of columns and aliases in a tree of classic Spark."""
    kind = node.getClass().getSimpleName()
    if kind in ("UnresolvedAttribute", "Alias"):
        yield from _items(node.nameParts() if kind == "UnresolvedAttribute" else node.name())
    for child in _items(node.children()):
        if hasattr(child, "getClass") and hasattr(child, "children"):
            yield from _names(child)


def _items(sequence: Any) -> list[Any]:
    """The items of a Scala sequence."""
    return [sequence.apply(place) for place in range(sequence.size())]


def _classic_text(node: Any, column: Column) -> str:
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedAttribute":
        return ".".join(map(quoted, _items(node.nameParts())))
    if kind == "Alias" and node.name().size() == 1:
        return f"{_classic_text(node.child(), column)} AS {quoted(node.name().apply(0))}"
    if kind in ("Literal", "SqlExpression"):
        return f"({node.sql()})"
    if kind == "UnresolvedFunction":
        arguments = [_classic_text(argument, column) for argument in _items(node.arguments())]
        return _call_text(node.functionName(), arguments, node.isDistinct()) or _refuse(column)
    return _refuse(column)


def _text(node: Any, column: Column) -> str:
    kind = type(node).__name__
    if kind == "ColumnAlias" and len(node._alias) == 1:
        return f"{_text(node._child, column)} AS {quoted(node._alias[0])}"
    if kind == "ColumnReference":
        return ".".join(quoted(part) for part in node._unparsed_identifier.split("."))
    if kind == "UnresolvedStar" and node._unparsed_target is None:
        return "*"
    if kind == "SQLExpression":
        return f"({node._expr})"
    if kind == "LiteralExpression":
        return _literal(node._value, node._dataType, column)
    if kind == "UnresolvedFunction":
        arguments = [_text(argument, column) for argument in node._args]
        return _call_text(node._name, arguments, node._is_distinct) or _refuse(column)
    return _refuse(column)


def _call_text(name: str, arguments: list[str], distinct: bool) -> str | None:
    if name in _INFIX and len(arguments) == 2:
        return f"({arguments[0]} {name} {arguments[1]})"
    if name.isidentifier():
        return f"{name}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"
    return None


def _literal(value: Any, kind: DataType, column: Column) -> str:
    if value is None:
        return "NULL"
    if isinstance(kind, BooleanType):
        return str(value).upper()
    if isinstance(kind, IntegralType) or (isinstance(kind, FractionalType) and math.isfinite(value)):
        return str(value)
    if isinstance(kind, StringType):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return _refuse(column)


def _refuse(column: Column) -> NoReturn:
    raise InvalidOption(
        "column-without-text",
        f"Spark does not give the SQL text of {column}",
        'write Spark SQL instead, such as agg("MAX(value) AS peak")',
    )
