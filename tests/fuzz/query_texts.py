"""Query texts for fuzzing: drawn from a grammar, or made from good ones by mutation. A seed gives the same text."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

_TESTS = Path(__file__).parent.parent
_FOLDERS = (_TESTS / "plan" / "golden", _TESTS / "language" / "papers")
_COLUMNS = ("ts", "sensor", "value", "host", "at", "orderID", "store", "a", "`the c`", "s.value", "x.y.z", "*", "S.*")
_TABLES = ("Sensors", "Services", "Traffic", "Local", "S", "db.S", "`a b`", "(SELECT * FROM Sensors)", "range(3)")
_NUMBERS = ("0", "1", "5", "100", "1.5", "-3", "1e9", "1e400", "9223372036854775808", "0.0000001", "٣", "1_0", "0x1F")
_UNITS = ("seconds", "minute", "milliseconds", "tuples", "rows", "days", "weeks", "", "parsecs", "%")
_FUNCTIONS = (
    "MAX",
    "COUNT",
    "SUM",
    "AVG",
    "COUNT DISTINCT",
    "LAST",
    "PERCENTILE",
    "abs",
    "reflect",
    "udf",
    "if",
    "max_by",
)
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "AND",
    "OR",
    "=",
    "<=>",
    "<",
    "||",
    "IN",
    "IS",
    "LIKE",
    "BETWEEN 1 AND",
    "::",
    ":",
    "DIV",
)
_ODD: tuple[str, ...] = (
    "'",
    '"',
    "`",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    "--",
    "/*",
    "*/",
    "/*+",
    "\\",
    "\x00",
    "\u202e",
    "\ufeff",
    "🜁",
    "{",
    "${x}",
)
_ODD += (
    "{{x}}",
    "@",
    "#",
    "\r\n",
    "\t",
    ":x",
    "?",
    "->",
    "=>",
    "..",
    "%",
    "\ud800",
    "é",
    "N'x'",
    "r'\\'",
    "$$",
    "!",
    "~",
    "1=1",
)
_CLAUSES = (
    "RANGE", "SLIDE", "LANDMARK", "WATTR", "PER", "SLACK", "DRATIO", "DELAY", "AFTER WHERE", "SHED BY", "ARRIVAL",
    "SOURCE", "HEARTBEAT", "LATE",
)  # fmt: skip
_TRAILING = (
    "WITH ERROR",
    "WITHIN",
    "CONFIDENCE",
    "USING",
    "LIMIT 3",
    "ORDER BY 1",
    "UNION ALL SELECT 1",
    "HAVING 1 = 1",
)
MOST_REPEATS = 3000


@cache
def corpus() -> tuple[str, ...]:
    """The good and the wrong queries of the other tests."""
    files = sorted(file for folder in _FOLDERS for file in folder.glob("*.sql"))
    return tuple(text for file in files for text in file.read_text(encoding="utf-8").split("\n---\n"))


def query_text(seed: int) -> str:
    """The text of a seed: one in three from the grammar, the others mutated."""
    rng = random.Random(seed)
    if seed % 3 == 0:
        return _query(rng, 0)
    text = _plausible(rng) if seed % 3 == 1 else rng.choice(corpus())
    for _ in range(rng.choice((0, 1, 2, 8))):
        text = _mutated(rng, text)
    return text


def _plausible(rng: random.Random) -> str:
    """A query that is mostly right."""
    clauses = ["RANGE 5 minutes", *rng.sample(("SLIDE 1 minute", "WATTR ts", "DRATIO 1%", "SLACK 20", "ARRIVAL at"), 3)]
    clauses += rng.sample(("DELAY 2 seconds", "SOURCE host", "LATE PANES", "LATE ROWS"), rng.randint(0, 2))
    if "DELAY 2 seconds" in clauses:
        clauses += rng.sample(("AFTER WHERE", "SHED BY value", "SHED BY (value * 2)"), rng.randint(0, 2))
    calls = (
        "MAX(value)",
        "COUNT(*)",
        "AVG(value + 1) AS mean",
        "COUNT(DISTINCT host)",
        "LAST(value)",
        "PERCENTILE(value, 0.5)",
    )
    group = rng.choice(("", " GROUP BY sensor", " GROUP BY sensor, host"))
    keys = group.removeprefix(" GROUP BY ")
    selected = ", ".join([*([keys] if keys else []), *rng.sample(calls, rng.randint(1, 3))])
    where = rng.choice(("", " WHERE value > 1", " WHERE sensor = 'a' AND LENGTH(host) > 2", " WHERE ts IS NOT NULL"))
    having = rng.choice(("", "", " HAVING COUNT(*) > 3")) if group else ""
    text = f"SELECT {selected} FROM Sensors [{' '.join(clauses)}]{where}{group}{having}"
    if rng.random() < 0.2:
        text = "SELECT sensor, AVG(value) FROM Sensors [WATTR ts] GROUP BY sensor WITHIN 0.5 CONFIDENCE 95%"
        return text + rng.choice(("", " USING (k 200, order edf)", " USING (economical)"))
    if rng.random() < 0.2:
        return f"WITH w AS ({text}) SELECT * FROM w"
    return text + rng.choice(("", "", " WITH ERROR"))


def _query(rng: random.Random, depth: int) -> str:
    columns = ", ".join(_aliased(rng, _expression(rng, depth)) for _ in range(rng.randint(1, 3)))
    text = f"SELECT {rng.choice(('', '', 'DISTINCT ', '/*+ BROADCAST(n) */ '))}{columns} FROM {_table(rng, depth)}"
    if rng.random() < 0.3:
        kind = rng.choice(("JOIN", "LEFT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "LEFT ANTI JOIN", ","))
        text += f" {kind} {_table(rng, depth)}" + rng.choice(("", " USING (k)", f" ON {_expression(rng, depth)}"))
    if rng.random() < 0.5:
        text += f" WHERE {_expression(rng, depth)}"
    if rng.random() < 0.5:
        text += f" GROUP BY {rng.choice(('ALL', '1', _expression(rng, depth), 'CUBE (a, b)', 'GROUPING SETS (a)'))}"
    if rng.random() < 0.2:
        text += f" HAVING {_expression(rng, depth)}"
    if rng.random() < 0.25:
        text += f" WITHIN {_amount(rng)} CONFIDENCE {rng.choice(_NUMBERS)}%"
        if rng.random() < 0.5:
            options = ("k 200", "order edf", "t_max 5 minutes", "capacity 3", "value_and_drift", "nonsense", "k k")
            text += f" USING ({', '.join(rng.sample(options, rng.randint(0, 3)))})"
    if rng.random() < 0.15:
        text += f" {rng.choice(_TRAILING)}"
    if rng.random() < 0.1 and depth < 2:
        text = f"WITH c AS ({_query(rng, depth + 1)}) {text}"
    return text


def _table(rng: random.Random, depth: int) -> str:
    table = f"({_query(rng, depth + 1)})" if depth < 2 and rng.random() < 0.1 else rng.choice(_TABLES)
    window = f" {_window(rng)}" if rng.random() < 0.7 else ""
    return table + window + rng.choice(("", "", " AS s", " s", " AS s (p, q)", " TABLESAMPLE (1 PERCENT)"))


def _window(rng: random.Random) -> str:
    clauses = []
    for word in rng.sample(_CLAUSES, rng.randint(0, 6)):
        value = _amount(rng)
        if word in ("WATTR", "PER", "SHED BY", "ARRIVAL", "SOURCE", "HEARTBEAT"):
            value = rng.choice(_COLUMNS) if rng.random() < 0.7 else f"({_expression(rng, 1)})"
        elif word == "LATE":
            value = rng.choice(("PANES", "ROWS", "COUNT", "SOON"))
        elif word == "AFTER WHERE":
            value = ""
        elif word == "LANDMARK":
            value = rng.choice(("'2024-01-01'", "7", "'never'", "-0.5"))
        clauses.append(f"{word} {value}")
    return f"[{rng.choice((' ', ', ')).join(clauses)}]"


def _amount(rng: random.Random) -> str:
    return f"{rng.choice(_NUMBERS)} {rng.choice(_UNITS)}"


def _aliased(rng: random.Random, expression: str) -> str:
    return expression + rng.choice(("", "", " AS x", " AS window_start", " AS `a b`", " y"))


def _expression(rng: random.Random, depth: int) -> str:
    kind = rng.random() * (1.0 if depth < 4 else 0.45)
    if kind < 0.3:
        return rng.choice(_COLUMNS)
    if kind < 0.45:
        return rng.choice(
            (*_NUMBERS, "'x'", "NULL", "TRUE", "DATE '2024-01-01'", "INTERVAL 1 DAY", "X'1F'", "2L", "m['k']")
        )
    inner, other = _expression(rng, depth + 1), _expression(rng, depth + 1)
    if kind < 0.65:
        function = rng.choice(_FUNCTIONS)
        tail = rng.choice(("", "", "", " FILTER (WHERE a)", " OVER (ORDER BY b)", " IGNORE NULLS"))
        distinct, second = "DISTINCT " if " " in function else "", f", {other}" if kind < 0.5 else ""
        return f"{function.split()[0]}({distinct}{inner}{second}){tail}"
    if kind < 0.85:
        return f"{inner} {rng.choice(_OPERATORS)} {other}"
    if kind < 0.9:
        return f"CASE WHEN {inner} THEN {other} END"
    if kind < 0.93:
        return f"(SELECT {inner} FROM {rng.choice(_TABLES)})"
    return f"({inner})"


def _mutated(rng: random.Random, text: str) -> str:
    """One random change."""
    at, to = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    to = min(to, at + 20)
    words = text.split(" ")
    change = rng.randrange(9)
    if change == 0:
        return text[:at] + text[to:]
    if change == 1:
        return text[:at] + text[at:to] + text[at:]
    if change == 2:
        return text[:at] + rng.choice(_ODD) + text[at:]
    if change == 3:
        return text[:at] + rng.choice((*_CLAUSES, *_TRAILING, *_OPERATORS, *_FUNCTIONS, *_NUMBERS)) + " " + text[at:]
    if change == 4:
        other = rng.choice(corpus())
        return text[:at] + other[rng.randint(0, len(other)) :]
    if change == 5:
        first, second = rng.randrange(len(words)), rng.randrange(len(words))
        words[first], words[second] = words[second], words[first]
        return " ".join(words)
    if change == 6:
        words[rng.randrange(len(words))] = rng.choice((*_COLUMNS, *_NUMBERS, *_UNITS, *_TABLES, _window(rng)))
        return " ".join(words)
    if change == 7:
        return text[:at]
    repeated = rng.choice(
        ("(", "[", "a.", "NOT ", "-", "a + ", "a, ", "(SELECT ", "CASE WHEN ", "f(", "'", "x -> ", "a[0]")
    )
    return text[:at] + repeated * rng.choice((2, 50, MOST_REPEATS)) + text[at:]
