"""The words of a Spark SQL text, where sqlglot takes them for others.

``window(ts, '5 minutes')`` is a call wherever it stands, also first behind GROUP BY, where sqlglot reads the clause
WINDOW. ``2L`` is one number and no cast, ``'a' 'b'`` one text, ``0x1F`` a name, and ALL and DISTINCT say nothing where
Spark takes them for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

TEXTS = {TokenType.STRING, TokenType.RAW_STRING}
_SET_OPERATIONS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
# Behind ALL, these say that it is a column's name.
_NAME_ENDS = {TokenType.FROM, TokenType.COMMA, TokenType.DOT, TokenType.R_PAREN, TokenType.ALIAS, TokenType.SEMICOLON}


class SparkTokens(Spark):
    """sqlglot's Spark dialect, with the words as Spark takes them."""

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """The tokens of a text.

        >>> [token.text for token in SparkTokens().tokenize("SELECT ALL 'a' 'b', 2L")]
        ['SELECT', 'ab', ',', '2L']
        >>> [token.token_type.name for token in SparkTokens().tokenize("GROUP BY window(ts)")][1]
        'VAR'
        """
        tokens = super().tokenize(sql, dialect)
        for token, following in pairwise(tokens):
            if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        return list(_joined(sql, tokens))


def _joined(sql: str, tokens: list[Token]) -> Iterator[Token]:
    whole: Token | None = None
    for token, following in pairwise([*tokens, None]):
        assert token is not None
        if whole is not None and _taken_for_granted(whole, token, following):
            continue
        if whole is not None and whole.token_type in TEXTS and token.token_type in TEXTS:
            whole = _upto(token, whole, TokenType.STRING, whole.text + token.text)
        elif whole is not None and whole.token_type == TokenType.NUMBER and whole.start == token.start:
            # sqlglot makes 2::BIGINT of 2L, all of it at one place.
            suffix = "" if token.token_type == TokenType.DCOLON else token.text.upper()
            whole = _upto(token, whole, TokenType.NUMBER, whole.text + suffix)
        else:
            if whole is not None:
                yield whole
            whole = token
            if token.token_type == TokenType.HEX_STRING and sql[token.start] == "0":
                whole = _upto(token, token, TokenType.VAR, sql[token.start : token.end + 1])
    if whole is not None:
        yield whole


def _taken_for_granted(before: Token, token: Token, following: Token | None) -> bool:
    if token.token_type == TokenType.DISTINCT:
        return before.token_type in _SET_OPERATIONS
    return (
        token.token_type == TokenType.ALL
        and before.token_type in (TokenType.SELECT, TokenType.L_PAREN)
        and following is not None
        and following.token_type not in _NAME_ENDS
    )


def _upto(last: Token, first: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, first.line, first.col, first.start, last.end, first.comments)
