"""Spark SQL expressions for which sqlglot has no node."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class TypedLiteral(exp.Expression, exp.Condition):
    """``DATE '2024-01-01'``: a type name and a string."""

    arg_types: ClassVar = {"this": True, "expression": True}


class VariantPath(exp.Expression, exp.Condition):
    """``v:a.b[0]``: a value inside a variant; the path consists of names, strings and numbers."""

    arg_types: ClassVar = {"this": True, "expressions": True}


class Spaceship(exp.NullSafeEQ):
    """``a <=> b``. It has the precedence of ``=``; sqlglot's node has the precedence of ``IS NOT DISTINCT FROM``."""


class Intervals(exp.Expression, exp.Condition):
    """``INTERVAL 1 DAY 2 HOURS``: one interval in several units."""

    arg_types: ClassVar = {"expressions": True}
