"""Spark SQL tokens, where sqlglot's tokenizer differs from Spark.

- ``window(ts, '5 minutes')`` is a call everywhere. sqlglot reads WINDOW as a clause after GROUP BY.
- ``2L`` is one number. sqlglot makes it a cast.
- ``'a' 'b'`` is one string, and ``0x1F`` is a name.
- ALL and DISTINCT are dropped where they are Spark's default.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

STRINGS = {TokenType.STRING, TokenType.RAW_STRING}
QUOTED = {*STRINGS, TokenType.IDENTIFIER}
PARENTHESIS_DEPTH = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
"""By how much a token changes the nesting of parentheses; 0 for tokens that are not in the table."""
BRACKET_DEPTH = {**PARENTHESIS_DEPTH, TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}
"""By how much a token changes the nesting of parentheses and square brackets."""

_SET_OPERATIONS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
# If one of these follows ALL, then ALL is a column.
_AFTER_COLUMN = {
    TokenType.FROM,
    TokenType.COMMA,
    TokenType.DOT,
    TokenType.R_PAREN,
    TokenType.ALIAS,
    TokenType.SEMICOLON,
}


class SparkTokens(Spark):
    """sqlglot's Spark dialect with Spark's tokens."""

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """Return the tokens of a text.

        >>> [token.text for token in SparkTokens().tokenize("SELECT ALL 'a' 'b', 2L")]
        ['SELECT', 'ab', ',', '2L']
        >>> [token.token_type.name for token in SparkTokens().tokenize("GROUP BY window(ts)")][1]
        'VAR'
        """
        tokens = super().tokenize(sql, dialect)
        for token, following in pairwise(tokens):
            if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        return list(_merge_tokens(sql, tokens))


def _merge_tokens(sql: str, tokens: list[Token]) -> Iterator[Token]:
    """Merge adjacent strings and number suffixes into one token, and drop redundant words."""
    pending: Token | None = None
    for token, following in pairwise([*tokens, None]):
        assert token is not None
        if pending is not None and _is_redundant(pending, token, following):
            continue
        if pending is not None and pending.token_type in STRINGS and token.token_type in STRINGS:
            pending = _span(pending, token, TokenType.STRING, pending.text + token.text)
        elif pending is not None and pending.token_type == TokenType.NUMBER and pending.start == token.start:
            # sqlglot splits 2L into the tokens of 2::BIGINT, which all start at the same position.
            suffix = "" if token.token_type == TokenType.DCOLON else token.text.upper()
            pending = _span(pending, token, TokenType.NUMBER, pending.text + suffix)
        else:
            if pending is not None:
                yield pending
            pending = token
            if token.token_type == TokenType.HEX_STRING and sql[token.start] == "0":
                pending = _span(token, token, TokenType.VAR, sql[token.start : token.end + 1])
    if pending is not None:
        yield pending


def _is_redundant(before: Token, token: Token, following: Token | None) -> bool:
    """Test whether ALL or DISTINCT only states Spark's default."""
    if token.token_type == TokenType.DISTINCT:
        return before.token_type in _SET_OPERATIONS
    return (
        token.token_type == TokenType.ALL
        and before.token_type in (TokenType.SELECT, TokenType.L_PAREN)
        and following is not None
        and following.token_type not in _AFTER_COLUMN
    )


def _span(first: Token, last: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, first.line, first.col, first.start, last.end, first.comments)
