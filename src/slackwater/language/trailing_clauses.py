"""The clauses that may follow a query: ``WITHIN … CONFIDENCE … USING (…)`` and ``WITH ERROR``."""

from __future__ import annotations

import math

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.language.clause import parse_percentage
from slackwater.language.spark_tokenizer import BRACKET_DEPTH, QUOTED
from slackwater.language.text_errors import token_error
from slackwater.language.tree import Precision
from slackwater.language.using_clause import parse_using

# A column or an alias may be called "within". Then one of these stands before or after the word.
_BEFORE_NAME = {TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.SELECT}
_AFTER_NAME = {TokenType.ALIAS, TokenType.COMMA, TokenType.DOT, TokenType.FROM}


def split_trailing_clauses(text: str, tokens: list[Token]) -> tuple[list[Token], Precision | None, bool]:
    """Return the tokens before the trailing clauses, the precision if one is given, and whether WITH ERROR is given."""
    precision, with_error = None, False
    start = _start_of_trailing(tokens)
    rest = tokens[start:]
    while rest:
        if _has_words(rest, "WITH", "ERROR"):
            with_error, rest = True, rest[2:]
        elif _has_words(rest, "WITHIN") and precision is None:
            precision, rest = _parse_precision(text, rest)
        else:
            raise token_error(
                text,
                rest[0],
                "behind-the-query",
                f"{rest[0].text!r} cannot follow the query",
                "only WITHIN … CONFIDENCE … USING (…) and WITH ERROR can",
            )
    return tokens[:start], precision, with_error


def _start_of_trailing(tokens: list[Token]) -> int:
    """Return the index of the first trailing clause, or the number of tokens."""
    precisions, errors, depth = [], [], 0
    for at, token in enumerate(tokens):
        depth += BRACKET_DEPTH.get(token.token_type, 0)
        if depth == 0 and _begins_precision(tokens, at):
            precisions.append(at)
        if depth == 0 and _begins_error(tokens, at):
            errors.append(at)
    # Only the last WITHIN can be the clause. Those before it are names.
    return min([len(tokens), *precisions[-1:], *errors])


def _begins_precision(tokens: list[Token], at: int) -> bool:
    following = tokens[at + 1 : at + 4]
    if not _has_words(tokens[at : at + 1], "WITHIN") or not following:
        return False
    if at and tokens[at - 1].token_type in _BEFORE_NAME:
        return False
    if following[0].token_type == TokenType.NUMBER:
        return True
    is_name = following[0].token_type in _AFTER_NAME or _has_words(following, "GROUP")
    return not is_name and any(_has_words([token], "CONFIDENCE") for token in following)


def _begins_error(tokens: list[Token], at: int) -> bool:
    ends = at + 2 == len(tokens) or _begins_precision(tokens, at + 2)
    return ends and _has_words(tokens[at : at + 2], "WITH", "ERROR")


def _has_words(tokens: list[Token], *words: str) -> bool:
    """Test whether ``tokens`` begin with these unquoted words."""
    return [*words] == [token.text.upper() for token in tokens[: len(words)] if token.token_type not in QUOTED]


def _parse_precision(text: str, tokens: list[Token]) -> tuple[Precision, list[Token]]:
    """Parse the WITHIN clause at the start of ``tokens``; return it and the tokens after it."""
    words = [token.text.upper() for token in tokens[:6]] + [""] * 6
    relative = words[2] == "%"
    confidence = 2 + relative
    well_formed = (
        tokens[1].token_type == TokenType.NUMBER
        and words[confidence] == "CONFIDENCE"
        and len(tokens) > confidence + 2
        and tokens[confidence + 1].token_type == TokenType.NUMBER
        and words[confidence + 2] == "%"
    )
    if not well_formed:
        remedy = "write WITHIN 0.5 CONFIDENCE 95%, or WITHIN 2% CONFIDENCE 95%"
        raise token_error(text, tokens[0], "wrong-precision", "the WITHIN clause is malformed", remedy)
    bound = parse_percentage(words[1]) if relative else float(words[1])
    level = parse_percentage(words[confidence + 1])
    if not 0 < level < 1:
        raise token_error(
            text,
            tokens[confidence + 1],
            "invalid-confidence",
            f"CONFIDENCE {words[confidence + 1]}% is not between 0% and 100%",
            "write more than 0% and less than 100%",
        )
    if bound <= 0 or not math.isfinite(bound):
        problem = f"WITHIN {words[1]} " + ("allows no error" if bound <= 0 else "is not a finite bound")
        raise token_error(text, tokens[1], "invalid-bound", problem, "write a bound above 0")
    rest = tokens[confidence + 3 :]
    using, rest = parse_using(text, rest) if _has_words(rest, "USING") else ((), rest)
    return Precision(bound, relative, level, using), rest
