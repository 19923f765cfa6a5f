"""What may stand behind a query: ``WITHIN … CONFIDENCE …`` and ``WITH ERROR``."""

from __future__ import annotations

import math

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.language.clause import percentage
from slackwater.language.text import located
from slackwater.language.tree import Precision

_QUOTED = {TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING}
_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET}
# A column or an alias may be called within: so may stand before it …
_NAMES_IT = {TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.SELECT}
# … and so behind it.
_GOES_ON = {TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.FROM}


def cut_tail(text: str, tokens: list[Token]) -> tuple[list[Token], Precision | None, bool]:
    """The tokens of a query without what stands behind it, and what that says."""
    precision, with_error = None, False
    cut = _start_of_tail(tokens)
    tail = tokens[cut:]
    while tail:
        if _says(tail, "WITH", "ERROR"):
            with_error, tail = True, tail[2:]
        elif _says(tail, "WITHIN") and precision is None:
            precision, tail = _precision(text, tail)
        else:
            raise located(
                text,
                tail[0].start,
                "behind-the-query",
                f"{tail[0].text!r} cannot stand behind the query",
                "only WITHIN … CONFIDENCE … and WITH ERROR can",
                length=tail[0].end - tail[0].start + 1,
            )
    return tokens[:cut], precision, with_error


def _start_of_tail(tokens: list[Token]) -> int:
    starts, depth = [len(tokens)], 0
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if depth == 0 and (_opens_precision(tokens, at) or _opens_error(tokens, at)):
            starts.append(at)
    behind = [at for at in starts if _opens_precision(tokens, at)][-1:]
    errors = [at for at in starts if _opens_error(tokens, at)]
    return min([len(tokens), *behind, *errors])


def _opens_precision(tokens: list[Token], at: int) -> bool:
    following = tokens[at + 1 : at + 4]
    if not _says(tokens[at:], "WITHIN") or not following or (at and tokens[at - 1].token_type in _NAMES_IT):
        return False
    if following[0].token_type == TokenType.NUMBER:
        return True
    goes_on = following[0].token_type in _GOES_ON or _says(following, "GROUP")
    return not goes_on and any(_says([token], "CONFIDENCE") for token in following)


def _opens_error(tokens: list[Token], at: int) -> bool:
    return _says(tokens[at:], "WITH", "ERROR") and (at + 2 == len(tokens) or _opens_precision(tokens, at + 2))


def _says(tokens: list[Token], *words: str) -> bool:
    said = [token.text.upper() for token in tokens[: len(words)] if token.token_type not in _QUOTED]
    return said == [*words]


def _precision(text: str, tail: list[Token]) -> tuple[Precision, list[Token]]:
    words = [token.text.upper() for token in tail[:6]] + [""] * 6
    relative = words[2] == "%"
    confidence = 2 + relative
    well_formed = (
        tail[1].token_type == TokenType.NUMBER
        and words[confidence] == "CONFIDENCE"
        and len(tail) > confidence + 2
        and tail[confidence + 1].token_type == TokenType.NUMBER
        and words[confidence + 2] == "%"
    )
    if not well_formed:
        raise located(
            text,
            tail[0].start,
            "wrong-precision",
            "this is no precision",
            "write WITHIN 0.5 CONFIDENCE 95%, or WITHIN 2% CONFIDENCE 95%",
            length=6,
        )
    bound = percentage(words[1]) if relative else float(words[1])
    stated = percentage(words[confidence + 1])
    if not 0 < stated < 1:
        raise located(
            text,
            tail[confidence + 1].start,
            "invalid-confidence",
            f"CONFIDENCE {words[confidence + 1]}% can never be kept or always is",
            "write more than 0% and less than 100%",
            length=len(words[confidence + 1]),
        )
    if bound <= 0 or not math.isfinite(bound):
        problem = f"WITHIN {words[1]} allows " + ("no error" if bound <= 0 else "any error")
        raise located(text, tail[1].start, "invalid-bound", problem, "write a bound above 0", length=len(words[1]))
    return Precision(bound, relative, stated), tail[confidence + 3 :]
