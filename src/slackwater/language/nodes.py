"""What Spark SQL says and sqlglot has no node for."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class TypedLiteral(exp.Expression, exp.Condition):
    """``DATE '2024-01-01'``: a word, and the text whose meaning it gives."""

    arg_types: ClassVar = {"this": True, "expression": True}


class Intervals(exp.Expression, exp.Condition):
    """``INTERVAL 1 DAY 2 HOURS``: one value of several units."""

    arg_types: ClassVar = {"expressions": True}
