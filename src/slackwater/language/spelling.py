"""A tree as Spark SQL, in the words that it was written in.

sqlglot's own Spark SQL is for trees of any dialect: it says what Spark would have to be told to do as another system
does. Here the tree is Spark's own, and every rewriting could only change it.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

from slackwater.language.nodes import Intervals, Spaceship, TypedLiteral, VariantPath

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
# They may stand behind what they negate, and must where more follows: a = b NOT IN (c) is not a = NOT b IN (c).
_NEGATED = {
    exp.Between: ("BETWEEN", "NOT BETWEEN"),
    exp.In: ("IN", "NOT IN"),
    exp.Is: ("IS", "IS NOT"),
    exp.RegexpLike: ("RLIKE", "NOT RLIKE"),
}


class FaithfulGenerator(SparkGenerator):
    """Spark SQL out of a tree that was read from Spark SQL."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar = set()
    TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"
    TYPE_MAPPING: ClassVar = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
    TRANSFORMS: ClassVar = {
        **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind not in _REWRITTEN},
        TypedLiteral: lambda self, node: f"{node.this} {self.sql(node, 'expression')}",
        Intervals: lambda self, node: self.intervals(node),
        VariantPath: lambda self, node: self.path(node),
        Spaceship: lambda self, node: self.binary(node, "<=>"),
    }

    def datatype_sql(self, expression: exp.DataType) -> str:
        return Generator.datatype_sql(self, expression)

    def trim_sql(self, expression: exp.Trim) -> str:
        where = expression.args.get("position")
        said = [where, self.sql(expression, "expression"), "FROM" if where or expression.expression else ""]
        return f"TRIM({' '.join(word for word in [*said, self.sql(expression, 'this')] if word)})"

    def not_sql(self, expression: exp.Not) -> str:
        predicate = expression.this
        # NOT a IS NULL and a IS NOT NULL are two expressions in Spark.
        if type(predicate) not in _NEGATED or isinstance(predicate.args.get("expression"), exp.Null):
            return super().not_sql(expression)
        word, negated = _NEGATED[type(predicate)]
        operand = self.sql(predicate, "this")
        return f"{operand} {negated}{self.sql(predicate).removeprefix(f'{operand} {word}')}"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        if expression.args.get("end") or expression.args.get("end_side"):
            return super().windowspec_sql(expression)
        said = [self.sql(expression, part) for part in ("kind", "start", "start_side")]
        return " ".join(word for word in said if word)

    def intervals(self, node: Intervals) -> str:
        return "INTERVAL " + " ".join(self.sql(unit).removeprefix("INTERVAL ") for unit in node.expressions)

    def path(self, node: VariantPath) -> str:
        said = ""
        for part in node.expressions:
            said += f".{self.sql(part)}" if isinstance(part, exp.Identifier) else f"[{self.sql(part)}]"
        return f"{self.sql(node, 'this')}:{said.removeprefix('.')}"
