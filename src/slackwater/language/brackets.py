"""Which brackets of a query are windows: those behind a table in FROM or JOIN, where Spark knows none."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.language.clause import KEYWORDS, parse_clause
from slackwater.language.text import located
from slackwater.language.tree import Window

_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET}
# Behind one of these stand expressions, and a bracket takes an element of an array or a map.
_EXPRESSIONS_FOLLOW = {
    TokenType.SELECT,
    TokenType.WHERE,
    TokenType.ON,
    TokenType.USING,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.QUALIFY,
    TokenType.LIMIT,
    TokenType.OFFSET,
}


@dataclass(frozen=True, slots=True)
class Cut:
    """A window as it stood: behind which character, where its bracket is, and what it said."""

    behind: int
    bracket: int
    window: Window


def cut_windows(text: str, tokens: list[Token]) -> tuple[list[Token], list[Cut]]:
    """The tokens of a query without its windows, and the windows."""
    kept: list[Token] = []
    cuts: list[Cut] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type != TokenType.L_BRACKET or not _opens_window(kept, tokens, at):
            kept.append(token)
            at += 1
            continue
        close = next((i for i in range(at, len(tokens)) if tokens[i].token_type == TokenType.R_BRACKET), None)
        if close is None:
            raise located(text, token.start, "open-bracket", "this window is not closed", "write ] behind it")
        cuts.append(Cut(kept[-1].end, token.start, parse_clause(text, token.end + 1, tokens[close].start)))
        at = close + 1
    return kept, cuts


def _opens_window(before: list[Token], tokens: list[Token], at: int) -> bool:
    follows = tokens[at + 1 : at + 3]
    # RANGE 5 is no expression: wherever it stands, a window is meant, to be refused with a caret.
    meant = len(follows) == 2 and follows[0].text.upper() in KEYWORDS and follows[1].token_type == TokenType.NUMBER
    return bool(before) and (meant or _behind_table(before))


def _behind_table(before: list[Token]) -> bool:
    """Whether the tokens end in a table of FROM or JOIN: ``FROM name``, ``JOIN a.b AS c``, ``FROM x, name``."""
    depth = 0
    # The last token is the table's name or alias, whatever word that is.
    for at in range(len(before) - 2, -1, -1):
        kind = before[at].token_type
        depth += (kind in _CLOSES) - (kind in _OPENS)
        if depth < 0 or (depth == 0 and kind in _EXPRESSIONS_FOLLOW):
            return False
        if depth == 0 and (kind == TokenType.JOIN or (kind == TokenType.FROM and _begins_clause(before, at))):
            return True
    return False


def _begins_clause(before: list[Token], at: int) -> bool:
    """Whether the FROM at ``at`` is a query's, not that of ``IS DISTINCT FROM`` or ``EXTRACT(year FROM ts)``."""
    if at == 0:
        return True
    if before[at - 1].token_type == TokenType.DISTINCT:
        return False
    depth = 0
    for earlier in range(at - 1, -1, -1):
        kind = before[earlier].token_type
        depth += (kind in _CLOSES) - (kind in _OPENS)
        if depth < 0:
            # (FROM name SELECT …) begins so too, but no call does.
            return earlier == at - 1 and (earlier == 0 or before[earlier - 1].token_type != TokenType.VAR)
        if depth == 0 and kind == TokenType.SELECT:
            return True
    return False
