"""Checks that the printed query means the same as its text.

Spark receives the syntax tree as it is printed, never the original text. A part that sqlglot loses or changes would
therefore run as a different query. Such queries are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryTextError
from slackwater.language.dialect import SPARK, SYNONYMS, spark_sql
from slackwater.language.text_errors import token_error

# Tokens that are compared by their text. Others are compared by their kind.
_COMPARED_BY_TEXT = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.HEX_STRING,
    TokenType.NUMBER,
}
_SYNONYMS = {**SYNONYMS, "POSITION": "LOCATE", "SUBSTR": "SUBSTRING"}
_KIND_SYNONYMS = {TokenType.SOME: TokenType.ANY, TokenType.UNKNOWN: TokenType.NULL}
# The generator may omit these where they change nothing.
_OPTIONAL = {TokenType.ALIAS, TokenType.ASC, TokenType.FROM, TokenType.FOR, TokenType.IN}
# The generator may also omit NULLS FIRST and NULLS LAST. The comparison of the trees covers them.
_NULLS = "NULLS"


def check_roundtrip(text: str, tokens: list[Token], select: exp.Query) -> None:
    """Raise ``QueryTextError`` if the printed query differs from its text.

    Each word, name and value of the text must appear in the printed query, and the printed query must parse to the
    same tree. This costs a second parse.
    """
    printed = spark_sql(select)
    printed_tokens = list(SPARK.tokenize(printed))
    remaining = Counter(word for _, word in _compared_words(printed_tokens))
    for token, word in _compared_words(tokens):
        if not remaining[word]:
            raise _unfaithful(text, token, f"{token.text!r} would be lost when the query is printed for Spark")
        remaining[word] -= 1
    try:
        trees = SPARK.parser().parse(printed_tokens, printed)
    except SqlglotError:
        trees = []
    if trees != [select]:
        changed = _first_difference(tokens, printed_tokens)
        raise _unfaithful(text, changed, "this would change its meaning when the query is printed for Spark")


def _compared_words(tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    for at, token in enumerate(tokens):
        if not at or tokens[at - 1].text.upper() != _NULLS or token.text.upper() not in ("FIRST", "LAST"):
            yield from ((token, word) for word in _normal_words(token))


def _normal_words(token: Token) -> Iterator[str]:
    """Yield the words of a token in a normal form: the kind of a keyword, or the words of a name or a value."""
    kind = token.token_type
    if kind not in _COMPARED_BY_TEXT:
        if token.text[:1].isalpha() and kind not in _OPTIONAL:
            yield _KIND_SYNONYMS.get(kind, kind).name
        return
    for word in token.text.upper().split():
        if word != _NULLS:
            # .5 is printed as 0.5, and INTERVAL -1 DAY as INTERVAL '-1' DAY.
            yield _SYNONYMS.get(word, word.lstrip("+-.0"))


def _first_difference(tokens: list[Token], printed_tokens: list[Token]) -> Token:
    for token, printed in zip(tokens, printed_tokens, strict=False):
        if list(_normal_words(token)) != list(_normal_words(printed)):
            return token
    return tokens[0]


def _unfaithful(text: str, token: Token, problem: str) -> QueryTextError:
    return token_error(text, token, "unfaithful-sql", problem, "write this part of the query in another way")
