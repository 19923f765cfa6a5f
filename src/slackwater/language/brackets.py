"""Finds the brackets that are window clauses: those after a table in FROM or JOIN, where Spark SQL has no brackets."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.language.clause import KEYWORDS, parse_clause
from slackwater.language.spark_tokenizer import BRACKET_DEPTH
from slackwater.language.text_errors import text_error
from slackwater.language.tree import Window

# Expressions follow these words, and there a bracket selects an element of an array or a map.
_BEFORE_EXPRESSIONS = {
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
class WindowInText:
    """A parsed window and its position in the text.

    ``table_end`` is the last character of the name or alias before the bracket, ``bracket`` the opening bracket.
    """

    table_end: int
    bracket: int
    window: Window


def split_windows(text: str, tokens: list[Token]) -> tuple[list[Token], list[WindowInText]]:
    """Return the tokens of a query without its window clauses, and the windows."""
    kept: list[Token] = []
    windows: list[WindowInText] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type != TokenType.L_BRACKET or not _opens_window(kept, tokens, at):
            kept.append(token)
            at += 1
            continue
        close = _closing_bracket(tokens, at)
        if close is None:
            raise text_error(text, token.start, "open-bracket", "this window is not closed", "write ] after it")
        window = parse_clause(text, token.end + 1, tokens[close].start)
        windows.append(WindowInText(kept[-1].end, token.start, window))
        at = close + 1
    return kept, windows


def _closing_bracket(tokens: list[Token], at: int) -> int | None:
    """The index of the bracket that closes the one at ``at``; an expression in the window may have brackets too."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}.get(tokens[index].token_type, 0)
        if depth == 0:
            return index
    return None


def _opens_window(before: list[Token], tokens: list[Token], at: int) -> bool:
    following = tokens[at + 1 : at + 3]
    # RANGE 5 is never an expression. Treat it as a window anywhere, so that the error points at it.
    like_clause = (
        len(following) == 2 and following[0].text.upper() in KEYWORDS and following[1].token_type == TokenType.NUMBER
    )
    return bool(before) and (like_clause or _ends_in_table(before))


def _ends_in_table(tokens: list[Token]) -> bool:
    """Test whether the tokens end in a table of FROM or JOIN: ``FROM name``, ``JOIN a.b AS c``, ``FROM x, name``."""
    depth = 0
    # The last token is the table's name or alias, and any word can be one.
    for at in range(len(tokens) - 2, -1, -1):
        kind = tokens[at].token_type
        depth -= BRACKET_DEPTH.get(kind, 0)
        if depth < 0 or (depth == 0 and kind in _BEFORE_EXPRESSIONS):
            return False
        if depth == 0 and (kind == TokenType.JOIN or (kind == TokenType.FROM and _begins_from_clause(tokens, at))):
            return True
    return False


def _begins_from_clause(tokens: list[Token], at: int) -> bool:
    """Test whether the FROM at ``at`` begins a clause, unlike ``IS DISTINCT FROM`` and ``EXTRACT(year FROM ts)``."""
    if at == 0:
        return True
    if tokens[at - 1].token_type == TokenType.DISTINCT:
        return False
    depth = 0
    for earlier in range(at - 1, -1, -1):
        kind = tokens[earlier].token_type
        depth -= BRACKET_DEPTH.get(kind, 0)
        if depth < 0:
            # (FROM name SELECT …) is a query, but name(FROM …) is a call.
            return earlier == at - 1 and (earlier == 0 or tokens[earlier - 1].token_type != TokenType.VAR)
        if depth == 0 and kind == TokenType.SELECT:
            return True
    return False
