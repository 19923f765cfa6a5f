"""A Spark SQL text with a place for one table, whose name is only known when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import spark_sql


@dataclass(frozen=True, slots=True)
class Slotted:
    """What stands before and behind the place: no text of a user's can be taken for the place itself.

    >>> Slotted("SELECT * FROM ", " AS s").filled("view")
    'SELECT * FROM view AS s'
    """

    before: str
    behind: str

    def filled(self, table: str) -> str:
        """The text with the table in its place."""
        return f"{self.before}{table}{self.behind}"


def slotted(tree: exp.Expr, place: exp.Table) -> Slotted:
    """The text of ``tree`` with ``place``, a table in it, left open.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT 'slot' FROM S AS slot", read="spark")
    >>> slotted(tree, tree.find(exp.Table)).before
    "SELECT 'slot' FROM "
    """
    taken = spark_sql(tree)
    name = "slot"
    while name in taken:
        name += "_"
    for part in ("db", "catalog"):
        place.set(part, None)
    place.set("this", exp.to_identifier(name))
    before, _, behind = spark_sql(tree).partition(name)
    return Slotted(before, behind)
