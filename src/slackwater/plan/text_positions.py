"""Positions of parts of a query in its text, and errors that point at them."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from slackwater.errors import QueryTextError
from slackwater.language import Query
from slackwater.language.spark_tokenizer import PARENTHESIS_DEPTH, QUOTED
from slackwater.language.text_errors import text_error

_SPARK = Spark()


def start_of(node: exp.Expr) -> int:
    """Return the position of a node, or of the first node inside it that has one.

    >>> from slackwater.language import parse
    >>> start_of(parse("SELECT 'v', MAX(v) FROM S").select.expressions[1])
    12
    """
    if "start" in node.meta:
        return int(node.meta["start"])
    return min((int(part.meta["start"]) for part in node.walk() if "start" in part.meta), default=0)


def find_words(text: str, words: str, *, after: int = 0, before: int | None = None) -> tuple[int, int]:
    """Return start and length of the first ``words`` from ``after`` on, or of the last ones ahead of ``before``.

    Quoted text does not count. A search with ``after`` alone also skips nested parentheses.

    >>> find_words("SELECT 'limit' FROM (SELECT 1 LIMIT 2) LIMIT 3", "LIMIT", after=15)
    (39, 5)
    """
    wanted = words.split()
    found: list[tuple[str, int, int]] = []
    depth = 0
    for token in _SPARK.tokenize(text):
        if token.start < after or (before is not None and token.start >= before):
            continue
        depth += PARENTHESIS_DEPTH.get(token.token_type, 0)
        if depth < 0 and before is None:
            break
        if token.token_type not in QUOTED and (depth <= 0 or before is not None):
            # sqlglot makes one token of ORDER BY.
            found += [(word, token.start, token.end + 1) for word in token.text.upper().split()]
    matches = [i for i in range(len(found)) if [word for word, _, _ in found[i : i + len(wanted)]] == wanted]
    if not matches:
        return after, 1
    first = matches[-1] if before is not None else matches[0]
    return found[first][1], found[first + len(wanted) - 1][2] - found[first][1]


def node_error(
    query: Query, node: exp.Expr, condition: str, problem: str, remedy: str, *, length: int = 1
) -> QueryTextError:
    """Build an error with carets under the first ``length`` characters of ``node``."""
    return text_error(query.text, start_of(node), condition, problem, remedy, length=length)


def position_error(
    query: Query, position: tuple[int, int], condition: str, problem: str, remedy: str
) -> QueryTextError:
    """Build an error with carets at ``position``, a start and a length as ``find_words`` returns them."""
    start, length = position
    return text_error(query.text, start, condition, problem, remedy, length=length)
