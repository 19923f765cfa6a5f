"""Errors that point at a character of the query text."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token

from slackwater.errors import QueryTextError

_OPENING = re.compile(r"--|/\*|['\"`]")
_CLOSED = {
    "--": re.compile(r"--[^\n]*"),
    "/*": re.compile(r"/\*.*?\*/", re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.|"")*"', re.DOTALL),
    "`": re.compile(r"`[^`]*`", re.DOTALL),
}


def text_error(
    text: str, position: int, condition: str, problem: str, remedy: str, *, length: int = 1
) -> QueryTextError:
    """Build an error whose message shows the line at ``position``, with carets under ``length`` characters.

    >>> print(text_error("SELECT 1\\nFROM S [RANGE x]", 22, "wrong-number", "'x' is not a number", "write one"))
    [wrong-number] 'x' is not a number; write one
      line 2, column 14
      FROM S [RANGE x]
                   ^
    """
    position = max(0, min(position, len(text)))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end]
    column = position - start
    # Terminals differ in the width of a tab, so the line is shown with one space per tab.
    shown = line.replace("\t", " ")
    carets = "^" * max(1, min(length, len(line) - column))
    number = text.count("\n", 0, position) + 1
    where = f"\n  line {number}, column {column + 1}\n  {shown}\n  {' ' * column}{carets}"
    return QueryTextError(condition, problem, remedy + where)


def token_error(text: str, token: Token, condition: str, problem: str, remedy: str) -> QueryTextError:
    """Build an error with carets under a whole sqlglot token."""
    return text_error(text, token.start, condition, problem, remedy, length=token.end - token.start + 1)


def find_unclosed(text: str) -> tuple[int, str] | None:
    """Return the position and the mark of the first quote or comment that is never closed, or None.

    >>> find_unclosed("SELECT 'a''b', `c -- d'")
    (15, '`')
    >>> find_unclosed("SELECT 'it\\'s' -- 'twas") is None
    True
    """
    at = 0
    while opening := _OPENING.search(text, at):
        whole = _CLOSED[opening[0]].match(text, opening.start())
        if whole is None:
            return opening.start(), opening[0]
        at = whole.end()
    return None
