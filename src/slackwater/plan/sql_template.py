"""A Spark SQL text with a placeholder for each of its streams, whose names are known only at run time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import spark_sql


@dataclass(frozen=True, slots=True)
class SqlTemplate:
    """The text between the placeholders. It is split, so no text of the user can be mistaken for one.

    ``places`` holds, for each placeholder of the text, which of the tables stands there.

    >>> SqlTemplate(("SELECT * FROM ", " AS s"), (0,)).fill("view")
    'SELECT * FROM view AS s'
    """

    pieces: tuple[str, ...]
    places: tuple[int, ...]

    def fill(self, *tables: str) -> str:
        """Return the text with ``tables`` at the placeholders."""
        found = [self.pieces[0]]
        for place, piece in zip(self.places, self.pieces[1:], strict=True):
            found += [tables[place], piece]
        return "".join(found)

    def removeprefix(self, prefix: str) -> SqlTemplate:
        """Return the template without a prefix of its text."""
        return SqlTemplate((self.pieces[0].removeprefix(prefix), *self.pieces[1:]), self.places)


def make_template(tree: exp.Expr, *tables: exp.Table) -> SqlTemplate:
    """Print ``tree`` with ``tables``, some of its tables, as placeholders. This changes the tree.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT 'slot0_' FROM S AS slot", read="spark")
    >>> make_template(tree, tree.find(exp.Table)).pieces
    ("SELECT 'slot0_' FROM ", ' AS slot')
    """
    return split_at_slots(tree, name_slots(tree, tables))


def name_slots(tree: exp.Expr, tables: Sequence[exp.Table]) -> str:
    """Give each table a name that is nowhere else in the tree; return what these names begin with."""
    printed = spark_sql(tree)
    slot = "slot"
    while re.search(rf"{slot}\d+_", printed):
        slot += "_"
    for number, table in enumerate(tables):
        for part in ("db", "catalog"):
            table.set(part, None)
        table.set("this", exp.to_identifier(f"{slot}{number}_"))
    return slot


def split_at_slots(tree: exp.Expr, slot: str) -> SqlTemplate:
    """Print a tree whose tables ``name_slots`` has named."""
    split = re.split(rf"{slot}(\d+)_", spark_sql(tree))
    return SqlTemplate(tuple(split[::2]), tuple(int(place) for place in split[1::2]))
