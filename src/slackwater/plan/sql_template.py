"""A Spark SQL text with a placeholder for one table, whose name is known only at run time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import spark_sql


@dataclass(frozen=True, slots=True)
class SqlTemplate:
    """The text before and after the placeholder. It is split, so no text of the user can be mistaken for it.

    >>> SqlTemplate("SELECT * FROM ", " AS s").fill("view")
    'SELECT * FROM view AS s'
    """

    before: str
    after: str

    def fill(self, table: str) -> str:
        """Return the text with ``table`` at the placeholder."""
        return f"{self.before}{table}{self.after}"


def make_template(tree: exp.Expr, table: exp.Table) -> SqlTemplate:
    """Print ``tree`` with ``table``, one of its tables, as the placeholder. This changes the tree.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT 'slot' FROM S AS slot", read="spark")
    >>> make_template(tree, tree.find(exp.Table)).before
    "SELECT 'slot' FROM "
    """
    printed = spark_sql(tree)
    name = "slot"
    while name in printed:
        name += "_"
    for part in ("db", "catalog"):
        table.set(part, None)
    table.set("this", exp.to_identifier(name))
    before, _, after = spark_sql(tree).partition(name)
    return SqlTemplate(before, after)
