"""Quoting of user-supplied names and strings for Spark SQL, and names that any file system takes."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable


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


def find_name(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that is meant, in any case and with or without backquotes; None if there is none.

    >>> find_name("`event time`", ["Event Time", "ts"]), find_name("x", ["ts"])
    ('Event Time', None)
    """
    known = list(names)
    for wanted in (name, unquoted(name) or name):
        if wanted in known:
            return wanted
        same = [other for other in known if other.lower() == wanted.lower()]
        if len(same) == 1:
            return same[0]
    return None


def near(name: str, names: Iterable[str]) -> str:
    """Return ``" (did you mean x?)"`` for the name most like ``name``, in any case, or an empty string.

    >>> near("chanel", ["channel", "price"])
    ' (did you mean channel?)'
    """
    spelled = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), spelled, n=1)
    return f" (did you mean {spelled[found[0]]}?)" if found else ""


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
