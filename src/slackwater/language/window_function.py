"""``window(ts, '5 minutes')`` is a call wherever it stands, also first behind GROUP BY.

sqlglot takes the word there for the clause WINDOW, which names no columns and is followed by a name.
"""

from __future__ import annotations

from itertools import pairwise

from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType


class SparkWithWindowFunction(Spark):
    """sqlglot's Spark dialect, which knows Spark's function from the clause of the same name."""

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """The tokens of a text; the word before a parenthesis is a name.

        >>> [token.token_type.name for token in SparkWithWindowFunction().tokenize("GROUP BY window(ts)")][1]
        'VAR'
        """
        tokens = super().tokenize(sql, dialect)
        for token, following in pairwise(tokens):
            if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        return tokens
