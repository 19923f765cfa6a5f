"""Tokens of the bracket clause, with their positions.

Spark's lexer reads ``30s`` as a SMALLINT literal, so the clause has a lexer of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.language.text_errors import text_error

_QUOTED_OR_PARENTHESIS = re.compile(r"`[^`]*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[()]", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)
      | (?P<word>[^\W\d]\w*)
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")
      | (?P<mark>[%,.\-])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind, its text without quotes, and its position in the whole query (``end`` is exclusive).

    An expression in parentheses is one token; its text is what stands between them.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The token in upper case if it can be a keyword, else an empty string."""
        return self.text.upper() if self.kind == "word" else ""


def clause_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """Yield the tokens of ``text[start:end]``, without spaces and comments.

    >>> [token.text for token in clause_tokens("RANGE 30s, DRATIO 1%", 0, 20)]
    ['RANGE', '30', 's', ',', 'DRATIO', '1', '%']
    """
    at = start
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None and (close := _closing(text, at, end)):
            yield Token("expression", text[at + 1 : close - 1].strip(), at, close)
            at = close
            continue
        if match is None:
            raise text_error(text, at, "unknown-character", f"{text[at]!r} has no meaning in a window", "remove it")
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        content = match[0]
        if kind == "quoted":
            content = content[1:-1].replace("``", "`")
        elif kind == "string":
            content = re.sub(r"\\(.)|''", lambda escaped: escaped[1] or "'", content[1:-1])
        yield Token(kind, content, match.start(), match.end())


def _closing(text: str, at: int, end: int) -> int:
    """The position after the parenthesis that closes the one at ``at``; 0 if none opens at ``at`` or it stays open."""
    depth = 0
    for found in _QUOTED_OR_PARENTHESIS.finditer(text, at, end) if text[at] == "(" else ():
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return 0
