"""Prints a syntax tree as Spark SQL without rewriting it.

sqlglot's own Spark generator accepts trees of any dialect and rewrites them into what Spark understands. Our trees
come from Spark SQL, so each rewriting could only change the query.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

from slackwater.language.spark_nodes import Intervals, Spaceship, TypedLiteral, VariantPath

# Nodes that sqlglot rewrites for older Spark versions or for trees of other dialects.
_REWRITTEN_BY_SQLGLOT = {
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.From,
    exp.Pivot,
    exp.Select,
    exp.Table,
    exp.Trim,
    exp.WithinGroup,
}
# Predicates that take NOT after the operand. They need it there: a = b NOT IN (c) differs from a = NOT b IN (c).
_NEGATED = {
    exp.Between: ("BETWEEN", "NOT BETWEEN"),
    exp.In: ("IN", "NOT IN"),
    exp.Is: ("IS", "IS NOT"),
    exp.RegexpLike: ("RLIKE", "NOT RLIKE"),
}


class FaithfulGenerator(SparkGenerator):
    """Spark SQL generator for trees that were parsed from Spark SQL."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar = set()
    TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"
    TYPE_MAPPING: ClassVar = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
    TRANSFORMS: ClassVar = {
        **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind not in _REWRITTEN_BY_SQLGLOT},
        TypedLiteral: lambda self, node: f"{node.this} {self.sql(node, 'expression')}",
        Intervals: lambda self, node: self.intervals(node),
        VariantPath: lambda self, node: self.variant_path(node),
        Spaceship: lambda self, node: self.binary(node, "<=>"),
    }

    def datatype_sql(self, expression: exp.DataType) -> str:
        return Generator.datatype_sql(self, expression)

    def trim_sql(self, expression: exp.Trim) -> str:
        where = expression.args.get("position")
        words = [where, self.sql(expression, "expression"), "FROM" if where or expression.expression else ""]
        return f"TRIM({' '.join(word for word in [*words, self.sql(expression, 'this')] if word)})"

    def not_sql(self, expression: exp.Not) -> str:
        predicate = expression.this
        # Spark keeps NOT a IS NULL and a IS NOT NULL as two different expressions.
        if type(predicate) not in _NEGATED or isinstance(predicate.args.get("expression"), exp.Null):
            return super().not_sql(expression)
        word, negated = _NEGATED[type(predicate)]
        operand = self.sql(predicate, "this")
        return f"{operand} {negated}{self.sql(predicate).removeprefix(f'{operand} {word}')}"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        if expression.args.get("end") or expression.args.get("end_side"):
            return super().windowspec_sql(expression)
        words = [self.sql(expression, part) for part in ("kind", "start", "start_side")]
        return " ".join(word for word in words if word)

    def intervals(self, node: Intervals) -> str:
        return "INTERVAL " + " ".join(self.sql(unit).removeprefix("INTERVAL ") for unit in node.expressions)

    def variant_path(self, node: VariantPath) -> str:
        path = ""
        for part in node.expressions:
            path += f".{self.sql(part)}" if isinstance(part, exp.Identifier) else f"[{self.sql(part)}]"
        return f"{self.sql(node, 'this')}:{path.removeprefix('.')}"
