"""Any text is either a query that prints and parses to itself, or refused with a condition: no crash, no hang, no code.

``make fuzz`` tries a hundred thousand texts; ``SLACKWATER_FUZZ`` is their number. A failure names the seed of its text.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slackwater.cli.stream_table import stream_table
from slackwater.errors import SlackwaterError
from slackwater.language import CODE_FUNCTIONS, parse, parse_script, print_query, spark_sql
from slackwater.plan import explain, make_plan
from slackwater.plan.explain import explain_standing
from tests.fuzz.query_texts import query_text
from tests.plan.test_golden import CATALOG

TEXTS = int(os.environ.get("SLACKWATER_FUZZ", "900"))
CHUNKS = 6
HANG_S = 20
"""Processor time, not time on a clock, after which a text counts as hanging."""

_REFUSAL = re.compile(r"\[[a-z][a-z0-9-]+\] .+; .+", re.DOTALL)
_ACTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "ctypes.dlopen")
_NEVER_PRINTED = re.compile(rf"\b({'|'.join(sorted(CODE_FUNCTIONS))})\b\s*\(", re.IGNORECASE)
_watched: list[list[str]] = []


def _watch(event: str, _arguments: Any) -> None:
    if _watched and event in _ACTS:
        _watched[-1].append(event)


sys.addaudithook(_watch)


@contextmanager
def harmless() -> Iterator[None]:
    """Assert that the block starts no process and opens no connection, and takes less than ``HANG_S`` of processor."""

    def interrupt(_signal: int, _frame: Any) -> None:
        raise TimeoutError(f"more than {HANG_S} s of processor time")

    acts: list[str] = []
    _watched.append(acts)
    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        _watched.remove(acts)
    assert not acts


def judge(text: str) -> bool:
    """Parse, print, plan and explain a text; whether it was accepted."""
    try:
        queries = parse_script(text)
    except SlackwaterError as error:
        assert _REFUSAL.match(str(error)), f"not a refusal in the house form: {error}"
        return False
    accepted = True
    for query in queries:
        printed = print_query(query)
        assert parse(printed) == query, f"prints as {printed!r}"
        assert not _NEVER_PRINTED.search(_without_quotes(spark_sql(query.select))), f"runs code: {printed!r}"
        try:
            stream_table(query)
            explain_standing(query, CATALOG) if query.precision is not None else explain(make_plan(query, CATALOG))
        except SlackwaterError as error:
            assert _REFUSAL.match(str(error)), f"not a refusal in the house form: {error}"
            accepted = False
    return accepted


def _without_quotes(sql: str) -> str:
    return re.sub(r"'(?:[^'\\]|\\.)*'|`[^`]*`(?!\s*\()", "''", sql)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_text_is_a_query_or_refused(chunk: int) -> None:
    accepted = 0
    for seed in range(chunk * TEXTS // CHUNKS, (chunk + 1) * TEXTS // CHUNKS):
        text = query_text(seed)
        try:
            with harmless():
                accepted += judge(text)
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{text[:2000]!r}")
    assert accepted, "the texts must not all be wrong"


def test_a_query_that_reads_nothing_is_refused() -> None:
    query = parse("SELECT AVG(1) WITHIN 0.5 CONFIDENCE 95%")
    with pytest.raises(SlackwaterError, match="not-standing"):
        explain_standing(query, CATALOG)
    with pytest.raises(SlackwaterError, match="which-stream"):
        stream_table(query)


@pytest.mark.parametrize(
    "repeated", ["a[0]", "a.", "(", "[", "NOT ", "(SELECT ", "CASE WHEN ", "a + ", "a, ", "{{", "f("]
)
def test_long_repetitions_do_not_hang(repeated: str) -> None:
    for times in (10, 5_000):
        with harmless():
            judge(f"SELECT {repeated * times} x FROM Sensors [RANGE 5 minutes]")
