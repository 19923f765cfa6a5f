"""The bracket clause: its keywords, each with what may follow it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from slackwater.errors import InvalidOption
from slackwater.language.lexer import Token, clause_tokens
from slackwater.language.text import located
from slackwater.language.tree import Extent, Late, Measure, Window
from slackwater.units import duration_ms

KEYWORDS = (
    "RANGE",
    "SLIDE",
    "LANDMARK",
    "WATTR",
    "PER",
    "SLACK",
    "DRATIO",
    "DELAY",
    "ARRIVAL",
    "SOURCE",
    "HEARTBEAT",
    "LATE",
)
_MOST = 2.0**63  # Spark counts microseconds, and numbers, in 64 bits
_TUPLE_WORDS = {"TUPLE", "TUPLES", "ROW", "ROWS"}


def parse_clause(text: str, start: int, end: int) -> Window:
    """The window that stands in ``text[start:end]``, brackets left out; in any order, with or without commas.

    >>> parse_clause("RANGE 100 tuples, WATTR orderID", 0, 31).attribute
    'orderID'
    """
    return _Clause(text, start, end).parse()


def percentage(number: str) -> float:
    """The fraction that ``number`` per cent are, exact to the last digit so that printing gives the text again.

    >>> percentage("0.1")
    0.001
    """
    return float(Decimal(number) / 100)


class _Clause:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.tokens: Sequence[Token] = list(clause_tokens(text, start, end))
        self.at = 0
        self.start, self.end = start, end

    def parse(self) -> Window:
        if not self.tokens:
            raise located(self.text, self.start, "empty-window", "the brackets are empty", "write [RANGE 5 minutes]")
        said: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        while self.at < len(self.tokens):
            keyword = self._next()
            reader = _READERS.get(keyword.word)
            if reader is None:
                self._refuse(
                    keyword,
                    "unknown-clause",
                    f"{keyword.text!r} is no part of a window",
                    f"use one of {', '.join(KEYWORDS)}{_suggestion(keyword.text)}",
                )
            if keyword.word in places:
                self._refuse(keyword, "repeated-clause", f"{keyword.word} is said twice", "leave one of them out")
            field, read = reader
            said[field] = read(self, keyword)
            places[keyword.word] = (keyword.start, self.tokens[self.at - 1].end - keyword.start)
            self._skip(",")
        return Window(**said, places=places)

    # What may follow a keyword ------------------------------------------------------------------------------

    def extent(self, keyword: Token) -> Extent:
        number = self._number(keyword)
        unit = self._peek()
        if unit is None or unit.kind != "word" or unit.word in _READERS:
            return Extent(_plain(number.text), Measure.NUMBER)
        self.at += 1
        if unit.word in _TUPLE_WORDS:
            amount = _plain(number.text)
            if amount != int(amount):
                self._refuse(number, "wrong-number", f"{number.text} tuples cannot be counted", "write a whole number")
            return Extent(int(amount), Measure.TUPLES)
        return Extent(self._time(number, unit), Measure.TIME)

    def slack(self, keyword: Token) -> Extent:
        extent = self.extent(keyword)
        if extent.measure is Measure.NUMBER:  # Kim 2007, Section 4: SLACK 10 is a number of tuples
            if extent.amount != int(extent.amount):
                self._refuse(keyword, "wrong-number", "SLACK counts tuples", "write a whole number, or a time")
            return Extent(int(extent.amount), Measure.TUPLES)
        return extent

    def duration(self, keyword: Token) -> float:
        number = self._number(keyword)
        unit = self._peek()
        if unit is None or unit.kind != "word" or unit.word in _READERS:
            self._refuse(number, "missing-unit", f"{keyword.word} {number.text} has no unit", "write '2 seconds'")
        self.at += 1
        return self._time(number, unit)

    def drop_ratio(self, keyword: Token) -> float:
        number = self._number(keyword)
        if not self._skip("%"):
            self._refuse(
                number,
                "missing-percent",
                f"DRATIO {number.text} has no per cent sign",
                "write the share of rows that may be lost as DRATIO 1%",
            )
        share = percentage(number.text)
        if share == 0 and float(number.text) == 0 and Decimal(number.text):
            self._refuse(number, "invalid-ratio", f"DRATIO {number.text}% is too little", "write more, or 0%")
        if share >= 1:
            self._refuse(
                number,
                "invalid-ratio",
                f"DRATIO {number.text}% would let every row be lost",
                "write less than 100%",
            )
        return share

    def landmark(self, keyword: Token) -> str | float:
        token = self._next_or(keyword, "a timestamp in quotes, or a number")
        if token.kind == "string":
            return token.text
        sign = -1 if token.text == "-" else 1
        if sign < 0:
            token = self._next_or(keyword, "a number")
        if token.kind != "number":
            self._refuse(
                token,
                "wrong-landmark",
                f"LANDMARK {token.text} is no point",
                "write a timestamp in quotes, or a number",
            )
        return sign * _plain(self._countable(token).text)

    def column(self, keyword: Token) -> str:
        token = self._next_or(keyword, "a column")
        if token.kind not in ("word", "quoted"):
            self._refuse(token, "wrong-column", f"{keyword.word} {token.text} is no column", "name a column")
        return token.text

    def columns(self, keyword: Token) -> tuple[str, ...]:
        columns = [self.column(keyword)]
        # A comma may also part two clauses: the next word decides.
        while (
            self.at + 1 < len(self.tokens)
            and self.tokens[self.at].text == ","
            and self.tokens[self.at + 1].word not in _READERS
        ):
            self.at += 1
            columns.append(self.column(keyword))
        return tuple(columns)

    def late(self, keyword: Token) -> Late:
        token = self._next_or(keyword, "PANES, ROWS or COUNT")
        try:
            return Late(token.text.lower())
        except ValueError:
            self._refuse(
                token,
                "unknown-late",
                f"LATE {token.text} is unknown",
                "write LATE PANES, LATE ROWS or LATE COUNT",
            )

    # Helpers ------------------------------------------------------------------------------------------------

    def _time(self, number: Token, unit: Token) -> float:
        try:
            ms = duration_ms(f"{number.text} {unit.text}")
        except InvalidOption:
            self._refuse(
                unit,
                "unknown-unit",
                f"{unit.text!r} is no unit of a window",
                "write milliseconds, seconds, minutes, hours, days, weeks or tuples",
            )
        if ms * 1000 >= _MOST:
            self._refuse(
                number,
                "too-large",
                f"{number.text} {unit.text} is longer than time in Spark",
                "write less than 290,000 years",
            )
        whole = round(ms * 1000) / 1000
        if abs(whole - ms) > 1e-6:
            self._refuse(
                number, "too-fine", f"{number.text} {unit.text} is finer than a microsecond", "write whole microseconds"
            )
        return whole

    def _number(self, keyword: Token) -> Token:
        token = self._next_or(keyword, "a number")
        if token.kind != "number":
            self._refuse(token, "wrong-number", f"{keyword.word} {token.text} is no number", "write a number above 0")
        return self._countable(token)

    def _countable(self, number: Token) -> Token:
        if float(number.text) >= _MOST:
            self._refuse(number, "too-large", f"{number.text} is more than Spark can count to", "write less than 2^63")
        return number

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _next_or(self, keyword: Token, wanted: str) -> Token:
        if self.at >= len(self.tokens) or self.tokens[self.at].text == ",":
            self._refuse(keyword, "missing-value", f"{keyword.word} needs {wanted}", "write it behind the word")
        return self._next()

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _skip(self, mark: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at].kind == "mark" and self.tokens[self.at].text == mark:
            self.at += 1
            return True
        return False

    def _refuse(self, token: Token, condition: str, problem: str, remedy: str) -> NoReturn:
        raise located(self.text, token.start, condition, problem, remedy, length=token.end - token.start)


def _plain(number: str) -> float:
    value = float(number)
    return int(value) if value.is_integer() and "." not in number and "e" not in number.lower() else value


def _suggestion(word: str) -> str:
    near = difflib.get_close_matches(word.upper(), KEYWORDS, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


_Reader = Callable[[_Clause, Token], Any]
_READERS: dict[str, tuple[str, _Reader]] = {
    "RANGE": ("range", _Clause.extent),
    "SLIDE": ("slide", _Clause.extent),
    "LANDMARK": ("landmark", _Clause.landmark),
    "WATTR": ("attribute", _Clause.column),
    "PER": ("per", _Clause.columns),
    "SLACK": ("slack", _Clause.slack),
    "DRATIO": ("drop_ratio", _Clause.drop_ratio),
    "DELAY": ("delay_ms", _Clause.duration),
    "ARRIVAL": ("arrival", _Clause.column),
    "SOURCE": ("sources", _Clause.columns),
    "HEARTBEAT": ("heartbeat", _Clause.column),
    "LATE": ("late", _Clause.late),
}
