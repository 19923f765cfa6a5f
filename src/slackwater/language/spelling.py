"""A tree as Spark SQL, in the words that it was written in.

sqlglot's own Spark SQL is for trees of any dialect: it says what Spark would have to be told to do as another system
does. Here the tree is Spark's own, and every rewriting could only change it.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

from slackwater.language.nodes import Intervals, TypedLiteral

# What sqlglot rewrites for older versions, or for trees of other dialects.
_REWRITTEN = {
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.From,
    exp.Pivot,
    exp.Select,
    exp.Table,
    exp.Trim,
    exp.WithinGroup,
}
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class FaithfulGenerator(SparkGenerator):
    """Spark SQL out of a tree that was read from Spark SQL."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar = set()
    TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"
    TYPE_MAPPING: ClassVar = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
    TRANSFORMS: ClassVar = {
        **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind not in _REWRITTEN},
        TypedLiteral: lambda self, node: f"{node.this} {self.sql(node, 'expression')}",
        Intervals: lambda self, node: self.intervals(node),
        exp.JSONExtract: lambda self, node: self.path(node),
    }

    def datatype_sql(self, expression: exp.DataType) -> str:
        return Generator.datatype_sql(self, expression)

    def trim_sql(self, expression: exp.Trim) -> str:
        where = expression.args.get("position")
        said = [where, self.sql(expression, "expression"), "FROM" if where or expression.expression else ""]
        return f"TRIM({' '.join(word for word in [*said, self.sql(expression, 'this')] if word)})"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        if expression.args.get("end") or expression.args.get("end_side"):
            return super().windowspec_sql(expression)
        said = [self.sql(expression, part) for part in ("kind", "start", "start_side")]
        return " ".join(word for word in said if word)

    def intervals(self, node: Intervals) -> str:
        return "INTERVAL " + " ".join(self.sql(unit).removeprefix("INTERVAL ") for unit in node.expressions)

    def path(self, node: exp.JSONExtract) -> str:
        """``v:a.b[0]``: a path into a variant."""
        if not node.args.get("variant_extract"):
            return str(SparkGenerator.TRANSFORMS[exp.JSONExtract](self, node))
        said = ""
        for part in node.expression.expressions:
            inner = part.this
            if isinstance(part, exp.JSONPathSubscript):
                said += "[*]" if isinstance(inner, exp.JSONPathWildcard) else f"[{inner}]"
            elif isinstance(part, exp.JSONPathKey) and _PLAIN_KEY.fullmatch(inner) and not part.args.get("quoted"):
                said += f".{inner}"
            elif isinstance(part, exp.JSONPathKey):
                said += f"[{self.sql(exp.Literal.string(inner))}]"
        return f"{self.sql(node, 'this')}:{said.removeprefix('.')}"
