"""Names of tables in a query."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import spark_sql


def table_name(table: exp.Table) -> str:
    """Return a table's name as Spark SQL, with its database and its quotes, without alias and window.

    >>> import sqlglot
    >>> table_name(sqlglot.parse_one("SELECT 1 FROM db.`the AS table` AS t", read="spark").find(exp.Table))
    'db.`the AS table`'
    """
    parts = {part: table.args.get(part) for part in ("this", "db", "catalog")}
    return spark_sql(exp.Table(**{part: value.copy() for part, value in parts.items() if value}))
