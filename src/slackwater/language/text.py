"""A query text and the places in it, so that every refusal can point at its character."""

from __future__ import annotations

import re

from slackwater.errors import QueryTextError

_OPENING = re.compile(r"--|/\*|['\"`]")
_CLOSED = {
    "--": re.compile(r"--[^\n]*"),
    "/*": re.compile(r"/\*.*?\*/", re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.|"")*"', re.DOTALL),
    "`": re.compile(r"`[^`]*`", re.DOTALL),
}


def located(text: str, position: int, condition: str, problem: str, remedy: str, *, length: int = 1) -> QueryTextError:
    """An error whose message ends with the line of ``text`` at ``position`` and carets under ``length`` characters.

    >>> print(located("SELECT 1\\nFROM S [RANGE x]", 22, "wrong-number", "'x' is no number", "write one"))
    [wrong-number] 'x' is no number; write one
      line 2, column 14
      FROM S [RANGE x]
                   ^
    """
    position = max(0, min(position, len(text)))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end]
    column = position - start
    # A tab is one character wide here, or the caret would stand elsewhere in every terminal.
    shown = line.replace("\t", " ")
    carets = "^" * max(1, min(length, len(line) - column))
    number = text.count("\n", 0, position) + 1
    where = f"\n  line {number}, column {column + 1}\n  {shown}\n  {' ' * column}{carets}"
    return QueryTextError(condition, problem, remedy + where)


def unclosed(text: str) -> tuple[int, str] | None:
    """The first quote or comment that is opened and never closed: where it stands, and its mark.

    >>> unclosed("SELECT 'a''b', `c -- d'")
    (15, '`')
    >>> unclosed("SELECT 'it\\'s' -- 'twas") is None
    True
    """
    at = 0
    while opening := _OPENING.search(text, at):
        whole = _CLOSED[opening[0]].match(text, opening.start())
        if whole is None:
            return opening.start(), opening[0]
        at = whole.end()
    return None
