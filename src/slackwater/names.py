"""Quoting of user-supplied names and strings for Spark SQL, and names that any file system takes."""

from __future__ import annotations

import re
import unicodedata


def quoted(name: str) -> str:
    """The name in backquotes. Backquotes inside it are doubled, so no name can inject SQL.

    >>> quoted("a b"), quoted("a`b")
    ('`a b`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def unquoted(sql: str) -> str | None:
    """The name in backquotes, without them; None if the text is anything else.

    >>> unquoted("`a``b`"), unquoted("`a` + `b`")
    ('a`b', None)
    """
    is_name = re.fullmatch(r"`(?:[^`]|``)+`", sql)
    return sql[1:-1].replace("``", "`") if is_name else None


def literal(text: str) -> str:
    r"""The text as a string literal of Spark SQL.

    >>> print(literal("it's"))
    'it\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def safe_name(text: str) -> str:
    """A name like ``text`` from letters and digits of ASCII, dots, hyphens and underscores.

    >>> safe_name("Event Time"), safe_name("Zeit_über"), safe_name("時刻")
    ('Event_Time', 'Zeit_uber', 'promise')
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", plain)[:80] or "promise"
