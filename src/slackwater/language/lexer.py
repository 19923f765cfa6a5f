"""The tokens of the bracket clause, with their places.

Spark's own lexer would read ``30s`` as a SMALLINT literal, so what stands in the brackets is read by this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.language.text import located

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
    """One token: its kind, what it says, and where it stands in the whole text."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The token as a keyword, or an empty text if it cannot be one."""
        return self.text.upper() if self.kind == "word" else ""


def clause_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of ``text[start:end]``, without space and comments.

    >>> [token.text for token in clause_tokens("RANGE 30s, DRATIO 1%", 0, 20)]
    ['RANGE', '30', 's', ',', 'DRATIO', '1', '%']
    """
    at = start
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None:
            raise located(text, at, "unknown-character", f"{text[at]!r} has no meaning in a window", "leave it out")
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        said = match[0]
        if kind == "quoted":
            said = said[1:-1].replace("``", "`")
        elif kind == "string":
            said = re.sub(r"\\(.)|''", lambda escaped: escaped[1] or "'", said[1:-1])
        yield Token(kind, said, match.start(), match.end())
