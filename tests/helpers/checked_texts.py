"""Query texts for ``check`` and for Spark: right ones, and right ones with one thing changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

SCHEMA = (
    "ts TIMESTAMP, seen TIMESTAMP, auction BIGINT, bidder INT, price BIGINT, rate DOUBLE, fee DECIMAL(10, 2), "
    "channel STRING, open BOOLEAN, day DATE, tags ARRAY<STRING>, extra MAP<STRING, STRING>, item STRUCT<kind: STRING, "
    "size: INT>, raw BINARY"
)
SIDE = "id BIGINT, name STRING, since DATE"
TABLES = f"CREATE TABLE bid ({SCHEMA}); CREATE TABLE side ({SIDE})"
_WINDOWS = (
    "[RANGE 10 seconds SLIDE 10 seconds WATTR ts DRATIO 1%]",
    "[RANGE 10 seconds SLIDE 5 seconds WATTR ts]",
    "[SESSION 10 seconds WATTR ts DRATIO 5%]",
    "[RANGE 1 minute SLIDE 1 minute WATTR ts DRATIO 1% LATE PANES]",
)
_NUMBERS = ("price", "bidder", "rate", "fee", "price + 1", "price * rate", "price - bidder", "ABS(rate)", "SIZE(tags)")
_TEXTS = ("channel", "UPPER(channel)", "CONCAT(channel, 'x')", "item.kind", "tags[0]", "extra['a']", "LOWER(item.kind)")
_TIMES = ("ts", "seen", "DATE_TRUNC('HOUR', ts)", "ts + INTERVAL 1 DAY")
_CONDITIONS = (
    "price > 10", "channel = 'a'", "open", "NOT open", "price IN (1, 2, 3)", "channel LIKE 'a%'",
    "rate BETWEEN 0 AND 1",
    "item.size > 3", "ARRAY_CONTAINS(tags, 'a')", "day > DATE '2024-01-01'", "seen >= ts", "channel IS NOT NULL",
    "price > 1 AND open", "LENGTH(channel) > 2 OR fee < 3", "EXISTS(tags, t -> t = 'a')", "YEAR(ts) = 2026",
    "auction IN (SELECT id FROM side)", "CASE WHEN open THEN price > 1 ELSE rate > 1 END",
)  # fmt: skip
_KEYS = ("channel", "auction", "bidder", "open", "UPPER(channel)", "price % 10", "day", "item.kind", "YEAR(ts)")
_AGGREGATES = (
    "COUNT(*)", "SUM({n})", "AVG({n})", "MAX({n})", "MIN({t})", "MAX({s})", "COUNT(DISTINCT {s})", "STDDEV({n})",
    "COLLECT_LIST({s})", "PERCENTILE_APPROX({n}, 0.5)", "COUNT_IF({c})", "SUM({n}) FILTER (WHERE {c})", "BOOL_OR({c})",
    "FIRST({s})", "MAX_BY({s}, {n})", "APPROX_COUNT_DISTINCT({s})", "SUM(CASE WHEN {c} THEN {n} ELSE 0 END)",
    "MEDIAN({n})", "SUM(IF({c}, 1, 0))", "AVG(LENGTH({s}))",
)  # fmt: skip
_COLUMNS: list[str] = re.findall(r"(\w+) [A-Z]+", SCHEMA)
_WRONG_CLAUSES = (" ORDER BY 1", " LIMIT 10", " HAVING price > 1", " WHERE 1", " GROUP BY ALL", " CLUSTER BY price")


def texts(count: int, seed: int = 29) -> Iterator[str]:
    """Texts in turn right (as far as the generator knows) and changed in one place."""
    rng = random.Random(seed)
    for number in range(count):
        text = _right(rng)
        yield text if number % 3 == 0 else _changed(rng, text)


def _fill(rng: random.Random, form: str) -> str:
    kinds = {"n": _NUMBERS, "s": _TEXTS, "t": _TIMES, "c": _CONDITIONS}
    return re.sub(r"\{(\w)\}", lambda found: rng.choice(kinds[found[1]]), form)


def _right(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.15:
        some = ", ".join(rng.sample([*_NUMBERS, *_TEXTS, *_TIMES], 3))
        return f"SELECT {some} FROM bid [WATTR ts DRATIO 1%] WHERE {rng.choice(_CONDITIONS)}"
    if kind < 0.25:
        left, right = (f"SELECT price, {rng.choice(_TEXTS)} AS s FROM bid [WATTR ts DRATIO 1%]" for _ in range(2))
        return f"{left} UNION ALL {right}"
    window = rng.choice(_WINDOWS)
    keys = rng.sample(_KEYS, rng.randint(1 if "SESSION" in window else 0, 2))
    calls = [_fill(rng, form) for form in rng.sample(_AGGREGATES, rng.randint(1, 3))]
    selected = ", ".join([*keys, *(f"{call} AS a{number}" for number, call in enumerate(calls))])
    joined = " JOIN side ON side.id = auction" if rng.random() < 0.2 else ""
    where = f" WHERE {rng.choice(_CONDITIONS)}" if rng.random() < 0.6 else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = f" HAVING {calls[0]} IS NOT NULL" if rng.random() < 0.2 else ""
    text = f"SELECT {selected} FROM bid {window}{joined}{where}{group}{having}"
    if rng.random() < 0.2 and "PANES" not in window:
        return f"SELECT window_end, MAX(a0) AS most, COUNT(*) AS n FROM ({text}) GROUP BY window_end"
    return text


def _changed(rng: random.Random, text: str) -> str:
    """The text with one change; some changes leave it right."""
    changes: tuple[Callable[[random.Random, str], str], ...] = (_other_column, _other_column, _unknown_name, _arguments)
    changes += (_clause, _wrapped, _swapped)
    change = rng.choice(changes)
    return change(rng, text)


def _names(text: str) -> list[re.Match[str]]:
    outside = re.sub(r"\[[A-Z][^\]]*\]|'[^']*'", lambda found: " " * len(found[0]), text)
    return [found for found in re.finditer(r"\b[a-z]\w*\b", outside) if found[0] in _COLUMNS]


def _other_column(rng: random.Random, text: str) -> str:
    names = _names(text)
    if not names:
        return text
    found = rng.choice(names)
    return text[: found.start()] + rng.choice(_COLUMNS) + text[found.end() :]


def _unknown_name(rng: random.Random, text: str) -> str:
    words = [found for found in re.finditer(r"\b\w{4,}\b", text) if found[0] not in ("SELECT", "FROM", "WHERE")]
    found = rng.choice(words)
    place = rng.randrange(found.start() + 1, found.end())
    return text[:place] + text[place + 1 :]


def _arguments(rng: random.Random, text: str) -> str:
    calls = list(re.finditer(r"\b[A-Z_]+\(", text))
    if not calls:
        return text
    found = rng.choice(calls)
    return text[: found.end()] + rng.choice(("", "price, ", "channel, ", "1, 2, ")) + text[found.end() :]


def _clause(rng: random.Random, text: str) -> str:
    return text + rng.choice(_WRONG_CLAUSES)


def _wrapped(rng: random.Random, text: str) -> str:
    names = _names(text)
    if not names:
        return text
    found = rng.choice(names)
    call = rng.choice(
        ("SUM", "MAX", "YEAR", "LENGTH", "ABS", "SIZE", "NOT ", "DATE_ADD", "ROW_NUMBER", "EXPLODE", "CAST")
    )
    return f"{text[: found.start()]}{call}({found[0]}){text[found.end() :]}"


def _swapped(rng: random.Random, text: str) -> str:
    operator = re.search(r" (=|>|<|AND|OR|LIKE|\+|\*|-|%) ", text)
    other = rng.choice((" + ", " AND ", " = ", " LIKE ", " || ", " * ", " < "))
    return text if operator is None else text[: operator.start()] + other + text[operator.end() :]
