"""Common table expressions: finds the definition behind a table's name, and replaces names by definitions."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from slackwater.language import Query
from slackwater.plan.text_positions import node_error


def definition_of(table: exp.Table) -> exp.CTE | None:
    """Return the CTE that a table's name refers to, the innermost in scope, or None.

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
        with_clause = node.args.get("with_")
        in_scope: list[exp.CTE] = []
        if isinstance(node, exp.With):  # a CTE can refer to those before it, and to itself if it is recursive
            before = [other is child for other in node.expressions].index(True)
            in_scope = node.expressions[: before + bool(node.args.get("recursive"))]
        elif with_clause is not None and with_clause is not child:
            in_scope = with_clause.expressions
        for cte in in_scope:
            if cte.alias.lower() == table.name.lower():
                return cte
        child, node = node, node.parent
    return None


def inline_ctes(query: Query, tables: list[exp.Table]) -> None:
    """Replace each table that names a CTE by the CTE's query, in place, as Spark does.

    The SELECT that reads ``tables`` can then run without the query around it. A recursive CTE cannot be inlined and is
    refused.
    """
    for table in tables:
        cte = definition_of(table)
        if cte is None:
            continue
        if table.find_ancestor(exp.CTE) is cte:
            problem = f"{table.name} is a recursive CTE, which cannot be joined with a window"
            remedy = "create a view from it and join the view"
            raise node_error(query, table, "recursive-cte", problem, remedy, length=len(table.name))
        inline_ctes(query, list(cte.this.find_all(exp.Table)))
        subquery = exp.Subquery(this=cte.this.copy())
        for argument, value in table.args.items():
            if argument in exp.Subquery.arg_types and argument != "this":
                subquery.set(argument, value)
        columns = (table.args.get("alias") or exp.TableAlias()).args.get("columns")
        if not columns:
            columns = cte.args["alias"].args.get("columns")
        name = exp.to_identifier(table.alias or table.name, quoted=True)
        subquery.set("alias", exp.TableAlias(this=name, columns=[column.copy() for column in columns or []]))
        table.replace(subquery)


def inline_repeated_ctes(query: Query, whole: exp.Query, has_window: Callable[[exp.Table], bool]) -> None:
    """Replace each CTE with a window that is read more than once by a copy for each of its readers, in place."""
    while True:
        readers: dict[int, list[exp.Table]] = {}
        for table in whole.find_all(exp.Table, bfs=False):
            cte = definition_of(table)
            if cte is not None and any(map(has_window, cte.this.find_all(exp.Table))):
                readers.setdefault(id(cte), []).append(table)
        repeated = next((tables for tables in readers.values() if len(tables) > 1), None)
        if repeated is None:
            return
        cte = definition_of(repeated[0])
        assert cte is not None
        inline_ctes(query, repeated)
        with_clause = cte.parent
        cte.pop()
        if isinstance(with_clause, exp.With) and not with_clause.expressions:
            with_clause.pop()
