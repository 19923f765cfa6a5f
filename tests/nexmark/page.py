"""The page docs/nexmark.md: each of Nexmark's queries, how it is written, and what its run gave."""

from __future__ import annotations

from pathlib import Path

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import plan_query_text
from tests.nexmark.suite import NUMBERS, text_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nexmark.md"
# What each query asks, and how the form that works differs from the original.
QUERIES = (
    ("pass every bid on", ""),
    ("convert prices", ""),
    ("filter by auction", ""),
    ("join auctions with their sellers", ""),
    ("average closing price per category", "closed auctions, averaged over 30 seconds of opening times"),
    ("the hottest auctions, every 2 seconds", ""),
    ("average price of each seller's last auctions", "over the winning bids that q9 writes, 11 tuples per seller"),
    ("the highest bid of each 10 seconds", ""),
    ("new persons who open auctions in the same 10 seconds", ""),
    ("the winning bid of each auction", "`MAX_BY` per auction instead of `ROW_NUMBER`"),
    ("write bids to folders by day and minute", ""),
    ("bids per bidder and session", ""),
    ("bids per bidder and 10 seconds of processing time", "a window over the time of arrival"),
    ("join with a static table", ""),
    ("calculate and filter", ""),
    ("bidding statistics per day", "a window of a day instead of a key"),
    ("the same per channel", "a window of a day instead of a key"),
    ("price statistics per auction and day", "a window of a day instead of a key"),
    ("the last bid of each bidder on each auction", "`MAX_BY` in a window of a day"),
    ("the ten highest bids of each auction", "top-N in a window of a day"),
    ("join bids with their auctions", ""),
    ("add a channel id", ""),
    ("split the address", ""),
)
_INTRO = """# Nexmark

Nexmark's queries q0 to q22 ask about a stream of persons, auctions and bids. Each runs in the test suite over a small
stream with disorder, and its results equal those of a batch job in plain Spark SQL over the same rows. The texts are in
`tests/nexmark/queries`; `python scripts/nexmark_page.py` runs them and writes this page.

| query | asks for | form | rows | equal to batch |
|---|---|---|---:|---|
"""


def refusal(number: int) -> QueryTextError | None:
    """The error for the original query; None if it is accepted."""
    text = text_of(number, "original")
    if text is None:
        return None
    try:
        plan_query_text(parse(text))
    except QueryTextError as error:
        return error
    raise AssertionError(f"q{number} is accepted as it was written")


def table_line(number: int, rows: int | None, equal: bool = True) -> str:
    """The line of a query in the table; without ``rows`` its beginning."""
    title, _ = QUERIES[number]
    form = "as in Nexmark" if text_of(number, "original") is None else "[another form](#forms)"
    line = f"| q{number} | {title} | {form} |"
    return line if rows is None else f"{line} {rows} | {'yes' if equal else 'no'} |"


def forms() -> str:
    """The queries that are refused as Nexmark has them: why, and the form that works."""
    parts = ["## Forms\n\nThese queries never come to a final result as Nexmark has them, so Spark cannot append it.\n"]
    for number in NUMBERS:
        error, text = refusal(number), text_of(number)
        if error is not None and text is not None:
            parts.append(f"**q{number}** `[{error.condition}]` {error.problem}. Form: {QUERIES[number][1]}.\n")
            parts.append(f"```sql\n{text}```\n")
    return "\n".join(parts)


def shown() -> str:
    """Three queries that show what the language has for Nexmark."""
    parts = ["## Three of them\n"]
    for number, words in ((5, "Results of a window aggregated again, and joined"), (8, "Two windows joined")):
        parts.append(f"{words} (q{number}):\n\n```sql\n{text_of(number)}```\n")
    parts.append(f"Sessions (q11):\n\n```sql\n{text_of(11)}```\n")
    return "\n".join(parts)


def page(rows: dict[int, tuple[int, bool]]) -> str:
    """The whole page, from the number of results of each query and whether they equal the batch's."""
    lines = "\n".join(table_line(number, *rows[number]) for number in NUMBERS)
    return f"{_INTRO}{lines}\n\n{shown()}\n{forms()}"
