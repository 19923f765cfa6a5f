"""The Spark SQL text of a Column."""

from __future__ import annotations

import math
from typing import Any

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
    if hasattr(classic, "_jc"):
        return str(classic._jc.node().sql())
    return _text(classic._expr, column)


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
        if node._name in _INFIX and len(arguments) == 2:
            return f"({arguments[0]} {node._name} {arguments[1]})"
        if node._name.isidentifier():
            distinct = "DISTINCT " if node._is_distinct else ""
            return f"{node._name}({distinct}{', '.join(arguments)})"
    raise _refused(column)


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
    raise _refused(column)


def _refused(column: Column) -> InvalidOption:
    return InvalidOption(
        "column-without-text",
        f"Spark Connect does not give the SQL text of {column}",
        'write Spark SQL instead, such as agg("MAX(value) AS peak")',
    )
