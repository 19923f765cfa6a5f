"""What was understood must be what was written: Spark is handed the tree as it is printed, never the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryTextError
from slackwater.language.dialect import SPARK, SYNONYMS, spark_sql
from slackwater.language.text import located

_SAID_BY_TEXT = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.HEX_STRING,
    TokenType.NUMBER,
}
_SYNONYMS = {**SYNONYMS, "POSITION": "LOCATE", "SUBSTR": "SUBSTRING"}
_KIND_SYNONYMS = {TokenType.SOME: TokenType.ANY, TokenType.UNKNOWN: TokenType.NULL}
# Left out in printing where they change nothing; the tree knows NULLS FIRST from NULLS LAST without the words.
_MAY_GO = {TokenType.ALIAS, TokenType.ASC, TokenType.FROM, TokenType.FOR, TokenType.IN}
_NULLS = "NULLS"


def refuse_unfaithful(text: str, tokens: list[Token], select: exp.Query) -> None:
    """Refuse a query that would reach Spark as another one.

    Two looks: no word, name or value of the text may be missing in what is printed, and that must be read as the same
    tree again. It costs a second reading.
    """
    printed = spark_sql(select)
    again = list(SPARK.tokenize(printed))
    left = Counter(word for _, word in _said(again))
    for token, word in _said(tokens):
        if not left[word]:
            raise _unfaithful(text, token, f"{token.text!r} would get lost on the way to Spark")
        left[word] -= 1
    try:
        trees = SPARK.parser().parse(again, printed)
    except SqlglotError:
        trees = []
    if trees != [select]:
        raise _unfaithful(text, _first_changed(tokens, again), "this would mean something else on the way to Spark")


def _said(tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    for at, token in enumerate(tokens):
        if not at or tokens[at - 1].text.upper() != _NULLS or token.text.upper() not in ("FIRST", "LAST"):
            yield from ((token, word) for word in _words(token))


def _words(token: Token) -> Iterator[str]:
    """What a token says, the same however it is spelt: a keyword's kind, or the words of a name or a value."""
    kind = token.token_type
    if kind not in _SAID_BY_TEXT:
        if token.text[:1].isalpha() and kind not in _MAY_GO:
            yield _KIND_SYNONYMS.get(kind, kind).name
        return
    for word in token.text.upper().split():
        if word != _NULLS:
            # .5 is printed as 0.5, and INTERVAL -1 DAY as INTERVAL '-1' DAY.
            yield _SYNONYMS.get(word, word.lstrip("+-.0"))


def _first_changed(tokens: list[Token], again: list[Token]) -> Token:
    for mine, other in zip(tokens, again, strict=False):
        if list(_words(mine)) != list(_words(other)):
            return mine
    return tokens[0]


def _unfaithful(text: str, token: Token, problem: str) -> QueryTextError:
    return located(
        text, token.start, "unfaithful-sql", problem, "write it in another way", length=token.end - token.start + 1
    )
