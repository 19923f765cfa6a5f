"""Parses the bracket clause, ``[RANGE 5 minutes SLIDE 1 minute …]``: each keyword and its value."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NoReturn

from slackwater.errors import InvalidOption
from slackwater.language.clause_lexer import Token, clause_tokens
from slackwater.language.text_errors import text_error
from slackwater.language.tree import Extent, Late, Measure, Window
from slackwater.names import quoted
from slackwater.units import duration_ms

KEYWORDS = (
    "RANGE",
    "SLIDE",
    "LANDMARK",
    "SESSION",
    "WATTR",
    "PER",
    "SLACK",
    "DRATIO",
    "DELAY",
    "AFTER",
    "SHED",
    "ARRIVAL",
    "SOURCE",
    "HEARTBEAT",
    "LATE",
)
_LIMIT = 2.0**63  # Spark stores microseconds and numbers in 64 bits
_TUPLE_WORDS = {"TUPLE", "TUPLES", "ROW", "ROWS"}


def parse_clause(text: str, start: int, end: int) -> Window:
    """Parse the window clause in ``text[start:end]``, without its brackets.

    Keywords may come in any order, with or without commas between them.

    >>> parse_clause("RANGE 100 tuples, WATTR orderID", 0, 31).attribute
    'orderID'
    """
    return _ClauseParser(text, start, end).parse()


def parse_percentage(number: str) -> float:
    """Convert a percentage to a fraction, exact to the last digit, so that printing gives the same text.

    >>> parse_percentage("0.1")
    0.001
    """
    return float(Decimal(number) / 100)


class _ClauseParser:
    """A parser over the tokens of one clause; ``at`` is the index of the next token."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.tokens: Sequence[Token] = list(clause_tokens(text, start, end))
        self.at = 0
        self.start, self.end = start, end

    def parse(self) -> Window:
        if not self.tokens:
            raise text_error(self.text, self.start, "empty-window", "the brackets are empty", "write [RANGE 5 minutes]")
        fields: dict[str, Any] = {}
        positions: dict[str, tuple[int, int]] = {}
        while self.at < len(self.tokens):
            keyword = self._next()
            reader = _READERS.get(keyword.word)
            if reader is None:
                self._refuse(
                    keyword,
                    "unknown-clause",
                    f"{keyword.text!r} is not a window clause",
                    f"use one of {', '.join(KEYWORDS)}{_suggestion(keyword.text)}",
                )
            if keyword.word in positions:
                self._refuse(keyword, "repeated-clause", f"{keyword.word} appears twice", "remove one of them")
            field, read = reader
            fields[field] = read(self, keyword)
            positions[keyword.word] = (keyword.start, self.tokens[self.at - 1].end - keyword.start)
            self._skip(",")
        return Window(**fields, positions=positions)

    # Values that follow a keyword ----------------------------------------------------------------------------

    def extent(self, keyword: Token) -> Extent:
        number = self._number(keyword)
        unit = self._peek()
        if unit is None or unit.kind != "word" or unit.word in _READERS:
            return Extent(_parse_number(number.text), Measure.NUMBER)
        self.at += 1
        if unit.word in _TUPLE_WORDS:
            amount = _parse_number(number.text)
            if amount != int(amount):
                self._refuse(
                    number, "wrong-number", f"{number.text} is not a whole number of tuples", "write a whole number"
                )
            return Extent(int(amount), Measure.TUPLES)
        return Extent(self._time(number, unit), Measure.TIME)

    def slack(self, keyword: Token) -> Extent:
        extent = self.extent(keyword)
        if extent.measure is Measure.NUMBER:  # Kim 2007, Section 4: SLACK 10 is a number of tuples
            if extent.amount != int(extent.amount):
                problem = f"SLACK {extent.amount:g} is not a whole number of tuples"
                self._refuse(keyword, "wrong-number", problem, "write a whole number, or a time")
            return Extent(int(extent.amount), Measure.TUPLES)
        return extent

    def duration(self, keyword: Token) -> float:
        number = self._number(keyword)
        unit = self._peek()
        if unit is None or unit.kind != "word" or unit.word in _READERS:
            self._refuse(
                number,
                "missing-unit",
                f"{keyword.word} {number.text} has no unit",
                f"write {keyword.word} {number.text} seconds",
            )
        self.at += 1
        return self._time(number, unit)

    def drop_ratio(self, keyword: Token) -> float:
        number = self._number(keyword)
        if not self._skip("%"):
            self._refuse(
                number,
                "missing-percent",
                f"DRATIO {number.text} has no percent sign",
                "write the share of rows that may be late as DRATIO 1%",
            )
        share = parse_percentage(number.text)
        if share == 0 and float(number.text) == 0 and Decimal(number.text):
            self._refuse(number, "invalid-ratio", f"DRATIO {number.text}% is too small", "write a larger ratio, or 0%")
        if share >= 1:
            self._refuse(
                number,
                "invalid-ratio",
                f"DRATIO {number.text}% would allow every row to be late",
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
                f"LANDMARK {token.text} is neither a timestamp nor a number",
                "write a timestamp in quotes, or a number",
            )
        return sign * _parse_number(self._check_size(token).text)

    def column(self, keyword: Token) -> str:
        token = self._next_or(keyword, "a column")
        if token.kind not in ("word", "quoted"):
            self._refuse(token, "wrong-column", f"{keyword.word} {token.text} is not a column", "name a column")
        return token.text

    def columns(self, keyword: Token) -> tuple[str, ...]:
        columns = [self.column(keyword)]
        # A comma may also separate two clauses; the next word decides.
        while (
            self.at + 1 < len(self.tokens)
            and self.tokens[self.at].text == ","
            and self.tokens[self.at + 1].word not in _READERS
        ):
            self.at += 1
            columns.append(self.column(keyword))
        return tuple(columns)

    def where(self, keyword: Token) -> bool:
        token = self._next_or(keyword, "WHERE")
        if token.word != "WHERE":
            self._refuse(token, "missing-where", f"AFTER {token.text} is unknown", "write DELAY 2 seconds AFTER WHERE")
        return True

    def utility(self, keyword: Token) -> str:
        by = self._next_or(keyword, "BY and a column")
        if by.word != "BY":
            self._refuse(by, "missing-by", f"SHED {by.text} has no BY", "write SHED BY column, or SHED BY (expression)")
        token = self._next_or(keyword, "a column, or an expression in parentheses")
        if token.kind == "expression":
            return token.text
        if token.kind not in ("word", "quoted"):
            problem = f"SHED BY {token.text} is not a column"
            self._refuse(token, "wrong-column", problem, "name a column, or write an expression in parentheses")
        return quoted(token.text)

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
                f"{unit.text!r} is not a unit",
                "write milliseconds, seconds, minutes, hours, days, weeks or tuples",
            )
        if ms * 1000 >= _LIMIT:
            self._refuse(
                number,
                "too-large",
                f"{number.text} {unit.text} exceeds the time range of Spark",
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
            self._refuse(
                token,
                "wrong-number",
                f"{keyword.word} {self.text[token.start : token.end]} is not a number",
                self._number_remedy(keyword, token),
            )
        return self._check_size(token)

    def _number_remedy(self, keyword: Token, token: Token) -> str:
        """What to write instead of a quoted time or an INTERVAL, as other systems have them."""
        rest = " ".join(following.text for following in self.tokens[self.at : self.at + 2])
        for written in (token.text, rest, rest.partition(" ")[0]):
            try:
                duration_ms(written)
            except InvalidOption:
                continue
            return f"write {keyword.word} {written}, without quotes and INTERVAL"
        return "write a number above 0"

    def _check_size(self, number: Token) -> Token:
        if float(number.text) >= _LIMIT:
            self._refuse(
                number, "too-large", f"{number.text} is too large for a number in Spark", "write less than 2^63"
            )
        return number

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _next_or(self, keyword: Token, wanted: str) -> Token:
        if self.at >= len(self.tokens) or self.tokens[self.at].text == ",":
            self._refuse(keyword, "missing-value", f"{keyword.word} needs {wanted}", f"write it after {keyword.word}")
        return self._next()

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _skip(self, mark: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at].kind == "mark" and self.tokens[self.at].text == mark:
            self.at += 1
            return True
        return False

    def _refuse(self, token: Token, condition: str, problem: str, remedy: str) -> NoReturn:
        raise text_error(self.text, token.start, condition, problem, remedy, length=token.end - token.start)


def _parse_number(number: str) -> float:
    """Parse a number; one without a point and an exponent becomes an int, so that it prints as it was written."""
    value = float(number)
    return int(value) if value.is_integer() and "." not in number and "e" not in number.lower() else value


def _suggestion(word: str) -> str:
    near = difflib.get_close_matches(word.upper(), KEYWORDS, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


_Reader = Callable[[_ClauseParser, Token], Any]
_READERS: dict[str, tuple[str, _Reader]] = {
    "RANGE": ("range", _ClauseParser.extent),
    "SLIDE": ("slide", _ClauseParser.extent),
    "LANDMARK": ("landmark", _ClauseParser.landmark),
    "SESSION": ("session_ms", _ClauseParser.duration),
    "WATTR": ("attribute", _ClauseParser.column),
    "PER": ("per", _ClauseParser.columns),
    "SLACK": ("slack", _ClauseParser.slack),
    "DRATIO": ("drop_ratio", _ClauseParser.drop_ratio),
    "DELAY": ("delay_ms", _ClauseParser.duration),
    "AFTER": ("after_where", _ClauseParser.where),
    "SHED": ("shed_by", _ClauseParser.utility),
    "ARRIVAL": ("arrival", _ClauseParser.column),
    "SOURCE": ("sources", _ClauseParser.columns),
    "HEARTBEAT": ("heartbeat", _ClauseParser.column),
    "LATE": ("late", _ClauseParser.late),
}
