"""What Spark SQL says and sqlglot has no node for."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class TypedLiteral(exp.Expression, exp.Condition):
    """``DATE '2024-01-01'``: a word, and the text whose meaning it gives."""

    arg_types: ClassVar = {"this": True, "expression": True}


class VariantPath(exp.Expression, exp.Condition):
    """``v:a.b[0]``: what stands at a place in a variant; names, texts and numbers say where."""

    arg_types: ClassVar = {"this": True, "expressions": True}


class Spaceship(exp.NullSafeEQ):
    """``a <=> b``, which binds as ``=`` does, where ``IS NOT DISTINCT FROM`` binds as ``IS`` does."""


class Intervals(exp.Expression, exp.Condition):
    """``INTERVAL 1 DAY 2 HOURS``: one value of several units."""

    arg_types: ClassVar = {"expressions": True}
