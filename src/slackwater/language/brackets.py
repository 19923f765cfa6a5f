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
    clauses = _Clauses()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        opens = token.token_type == TokenType.L_BRACKET and bool(kept)
        if not opens or not (clauses.last_may_be_table or _is_like_clause(tokens, at)):
            clauses.add(token, kept)
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


def _is_like_clause(tokens: list[Token], at: int) -> bool:
    """Whether RANGE 5 or the like follows: never an expression, so it is a window, or an error that points at it."""
    following = tokens[at + 1 : at + 3]
    return len(following) == 2 and following[0].text.upper() in KEYWORDS and following[1].token_type == TokenType.NUMBER


@dataclass(slots=True)
class _Level:
    """The query or the expression within a pair of brackets, as far as it was read.

    ``first`` is the index of its first token. ``after_call``: the brackets follow a name.
    """

    first: int
    after_call: bool = False
    has_select: bool = False
    in_tables: bool = False


class _Clauses:
    """Follows the tokens of a query, and knows which of them are in FROM or JOIN. Each token costs the same."""

    def __init__(self) -> None:
        self._levels = [_Level(0)]
        self.last_may_be_table = False
        """Whether the last token may be a table: ``FROM name``, ``JOIN a.b AS c``, ``FROM x, name``."""

    def add(self, token: Token, before: list[Token]) -> None:
        """Read one token; ``before`` are those ahead of it."""
        kind, level, at = token.token_type, self._levels[-1], len(before)
        # Any word can be the name of a table, so what the token itself begins does not count yet.
        self.last_may_be_table = level.in_tables
        depth = BRACKET_DEPTH.get(kind, 0)
        if depth > 0:
            self._levels.append(_Level(at + 1, after_call=at > 0 and before[-1].token_type == TokenType.VAR))
        elif depth < 0:
            if len(self._levels) > 1:
                self._levels.pop()
        elif kind in _BEFORE_EXPRESSIONS:
            level.in_tables = False
            level.has_select |= kind == TokenType.SELECT
        elif kind == TokenType.JOIN or (kind == TokenType.FROM and self._begins_from_clause(level, before)):
            level.in_tables = True

    @staticmethod
    def _begins_from_clause(level: _Level, before: list[Token]) -> bool:
        """Whether FROM begins a clause here, unlike in ``IS DISTINCT FROM`` and ``EXTRACT(year FROM ts)``."""
        if not before:
            return True
        if before[-1].token_type == TokenType.DISTINCT:
            return False
        # (FROM name SELECT …) is a query, but name(FROM …) is a call.
        return level.has_select or (level.first == len(before) > 0 and not level.after_call)
