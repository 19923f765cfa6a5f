"""Where something of a query stands in its text, so that a refusal points at it."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

_SPARK = Spark()
_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER}


def start_of(node: exp.Expr) -> int:
    """The first character of a node, or of what is known to be in it.

    >>> from slackwater.language import parse
    >>> start_of(parse("SELECT 'v', MAX(v) FROM S").select.expressions[1])
    12
    """
    if "start" in node.meta:
        return int(node.meta["start"])
    return min((int(part.meta["start"]) for part in node.walk() if "start" in part.meta), default=0)


def word_place(text: str, words: str, *, behind: int = 0, before: int | None = None) -> tuple[int, int]:
    """Where ``words`` stand for the first time behind a place, or the last time before one: start and length.

    Only words count: no text in quotes, and behind a place nothing in further parentheses.

    >>> word_place("SELECT 'limit' FROM (SELECT 1 LIMIT 2) LIMIT 3", "LIMIT", behind=15)
    (39, 5)
    """
    wanted = words.split()
    said: list[tuple[str, int, int]] = []
    depth = 0
    for token in _SPARK.tokenize(text):
        if token.start < behind or (before is not None and token.start >= before):
            continue
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0 and before is None:
            break
        if token.token_type not in _QUOTED and (depth <= 0 or before is not None):
            # sqlglot takes ORDER BY for one token
            said += [(word, token.start, token.end + 1) for word in token.text.upper().split()]
    found = [i for i in range(len(said)) if [word for word, _, _ in said[i : i + len(wanted)]] == wanted]
    if not found:
        return behind, 1
    first = found[-1] if before is not None else found[0]
    return said[first][1], said[first + len(wanted) - 1][2] - said[first][1]
