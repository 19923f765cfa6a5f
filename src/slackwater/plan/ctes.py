"""Common table expressions: what a table's name stands for, and a query that needs none of those around it."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import Query
from slackwater.language.text import located
from slackwater.plan.text_positions import start_of


def definition_of(table: exp.Table) -> exp.CTE | None:
    """The CTE that a table's name stands for: the innermost that is in sight, or None.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", read="spark")
    >>> {table.name: definition_of(table).alias for table in tree.find_all(exp.Table)}
    {'b': 'b', 'a': 'a'}
    """
    if table.db:
        return None
    child: exp.Expr = table
    node = table.parent
    while node is not None:
        around = node.args.get("with_")
        seen: list[exp.CTE] = []
        if isinstance(node, exp.With):  # a CTE sees those before it, and itself only if it is recursive
            before = [other is child for other in node.expressions].index(True)
            seen = node.expressions[: before + bool(node.args.get("recursive"))]
        elif around is not None and around is not child:
            seen = around.expressions
        for cte in seen:
            if cte.alias.lower() == table.name.lower():
                return cte
        child, node = node, node.parent
    return None


def write_out(query: Query, tables: list[exp.Table]) -> None:
    """Put what a CTE says in the place of its name, so that the part of a query that reads ``tables`` stands alone.

    Spark does the same with CTEs. A recursive one has no such text and is refused.
    """
    for table in tables:
        cte = definition_of(table)
        if cte is None:
            continue
        if table.find_ancestor(exp.CTE) is cte:
            raise located(
                query.text,
                start_of(table),
                "recursive-cte",
                f"{table.name} is recursive, and a window is computed apart from the query around it",
                "make a view of it and join the view",
                length=len(table.name),
            )
        write_out(query, list(cte.this.find_all(exp.Table)))
        said = exp.Subquery(this=cte.this.copy())
        for argument, value in table.args.items():
            if argument in exp.Subquery.arg_types and argument != "this":
                said.set(argument, value)
        columns = (table.args.get("alias") or exp.TableAlias()).args.get("columns")
        if not columns:
            columns = cte.args["alias"].args.get("columns")
        name = exp.to_identifier(table.alias or table.name, quoted=True)
        said.set("alias", exp.TableAlias(this=name, columns=[column.copy() for column in columns or []]))
        table.replace(said)
