"""Quoting of user-supplied names and strings for Spark SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """The name in backquotes. Backquotes inside it are doubled, so no name can inject SQL.

    >>> quoted("a b"), quoted("a`b")
    ('`a b`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""The text as a string literal of Spark SQL.

    >>> print(literal("it's"))
    'it\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
