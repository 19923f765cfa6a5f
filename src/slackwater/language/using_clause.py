"""Parses ``USING (k 200, order edf)``, which may follow ``WITHIN … CONFIDENCE …``."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import InvalidOption
from slackwater.language.spark_tokenizer import QUOTED
from slackwater.language.text_errors import text_error, token_error
from slackwater.language.tree import UsingOption
from slackwater.units import MS_US, duration_ms

_REMEDY = "write USING (k 200, order edf)"


def parse_using(text: str, tokens: list[Token]) -> tuple[tuple[UsingOption, ...], list[Token]]:
    """Parse the clause at the start of ``tokens``; return its options and the tokens after it."""
    if len(tokens) < 2 or tokens[1].token_type != TokenType.L_PAREN:
        raise token_error(text, tokens[0], "wrong-using", "USING is not followed by options in parentheses", _REMEDY)
    end = next((at for at, token in enumerate(tokens) if token.token_type == TokenType.R_PAREN), None)
    if end is None:
        raise token_error(text, tokens[1], "wrong-using", "this parenthesis is never closed", _REMEDY)
    options: dict[str, UsingOption] = {}
    for part in _split_at_commas(tokens[2:end]):
        if not part:
            raise token_error(text, tokens[0], "wrong-using", "an option of USING is empty", _REMEDY)
        option = _option(text, part)
        if option.name in options:
            raise token_error(text, part[0], "repeated-option", f"{option.name} appears twice", "remove one of them")
        options[option.name] = option
    return tuple(options.values()), tokens[end + 1 :]


def _split_at_commas(tokens: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _option(text: str, part: list[Token]) -> UsingOption:
    name = part[0].text.lower()
    read = _READERS.get(name)
    if read is None or part[0].token_type in QUOTED:
        near = difflib.get_close_matches(name, _READERS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        problem = f"{part[0].text!r} is not an option of USING"
        raise token_error(text, part[0], "unknown-option", problem, f"use one of {', '.join(_READERS)}{hint}")
    start, end = part[0].start, part[-1].end + 1
    return UsingOption(name, read(text, part), (start, end - start))


def _whole_number(text: str, part: list[Token]) -> int:
    if len(part) == 2 and part[1].token_type == TokenType.NUMBER and part[1].text.isdigit():
        return int(part[1].text)
    raise _wrong_value(text, part, "a whole number", f"{part[0].text} 200")


def _duration(text: str, part: list[Token]) -> float:
    if len(part) == 3 and part[1].token_type == TokenType.NUMBER:
        try:
            return round(duration_ms(f"{part[1].text} {part[2].text}") * MS_US) / MS_US
        except InvalidOption:
            pass
    raise _wrong_value(text, part, "a time", f"{part[0].text} 5 seconds")


def _name(text: str, part: list[Token]) -> str:
    """A word, which may have hyphens."""
    name = "".join(token.text for token in part[1:])
    if len(part) > 1 and name.replace("-", "").isalpha():
        return name.lower()
    raise _wrong_value(text, part, "a name", f"{part[0].text} …")


def _flag(text: str, part: list[Token]) -> bool:
    if len(part) == 1:
        return True
    raise _wrong_value(text, part, "no value", part[0].text)


def _wrong_value(text: str, part: list[Token], wanted: str, example: str) -> Exception:
    value = text[part[1].start : part[-1].end + 1] if len(part) > 1 else ""
    first, last = (part[1], part[-1]) if len(part) > 1 else (part[0], part[0])
    problem = f"{part[0].text} takes {wanted}" + (f", not {value}" if value else "")
    return text_error(text, first.start, "wrong-value", problem, f"write {example}", length=last.end + 1 - first.start)


_READERS: dict[str, Callable[[str, list[Token]], int | float | str | bool]] = {
    "method": _name,
    "k": _whole_number,
    "t_max": _duration,
    "while_interrupted": _duration,
    "capacity": _whole_number,
    "order": _name,
    "value_and_drift": _flag,
    "sum_of_errors": _flag,
}
DURATIONS = frozenset(name for name, read in _READERS.items() if read is _duration)
"""The options whose value is a number of milliseconds."""
