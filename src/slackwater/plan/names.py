"""Names of a user's choice in Spark SQL: whatever they hold, they stay names."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import spark_sql


def quoted(name: str) -> str:
    """A name in backquotes, those within it doubled, so that no name can end early and go on as SQL.

    >>> quoted("a b"), quoted("a`b")
    ('`a b`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""A text as a literal of Spark SQL.

    >>> print(literal("it's"))
    'it\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_name(table: exp.Table) -> str:
    """A table's name as Spark SQL reads it, with its database and its quotes, without alias and window.

    >>> import sqlglot
    >>> table_name(sqlglot.parse_one("SELECT 1 FROM db.`the AS table` AS t", read="spark").find(exp.Table))
    'db.`the AS table`'
    """
    parts = {part: table.args.get(part) for part in ("this", "db", "catalog")}
    return spark_sql(exp.Table(**{part: value.copy() for part, value in parts.items() if value}))
