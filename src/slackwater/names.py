"""Names and texts of a user's choice in Spark SQL: whatever they hold, they stay names and texts."""

from __future__ import annotations


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
