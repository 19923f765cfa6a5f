"""Finds the table of a query that ``--source`` provides; ``--table`` provides the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from slackwater.errors import InvalidOption
from slackwater.language import Query
from slackwater.language.text_errors import text_error
from slackwater.plan import make_plan
from slackwater.plan.ctes import definition_of
from slackwater.plan.text_positions import node_error


def stream_table(query: Query, static: Sequence[str] = ()) -> str:
    """The name of the stream: the table with a window, or the only table that is not in ``static``.

    >>> from slackwater.language import parse
    >>> stream_table(parse("SELECT SUM(w * p) FROM H JOIN Prices USING (s) WITHIN 1% CONFIDENCE 90%"), ["h"])
    'Prices'
    """
    given = {name.lower() for name in static}
    read = {table.name.lower(): table for table in query.tables() if definition_of(table) is None}
    for name in static:
        if name.lower() not in read:
            names = ", ".join(table.name for table in read.values())
            raise InvalidOption("no-such-table", f"--table {name}: the query does not read it", f"use one of: {names}")
    windowed = query.windowed()
    if query.precision is None and not windowed:
        make_plan(query)  # raises the error for a query without a window
    other = next((table for table, _ in windowed if table.name.lower() != windowed[0][0].name.lower()), None)
    if other is not None:
        problem = "two streams have a window, and the command has one source"
        remedy = "run the query in Python: name each stream with sw.stream"
        raise node_error(query, other.this, "two-streams", problem, remedy, length=len(other.name))
    streams = [windowed[0][0]] if windowed else [table for name, table in read.items() if name not in given]
    if not query.tables():
        problem, remedy = "the query reads no stream", "write FROM and its name"
        raise text_error(query.text, query.start, "which-stream", problem, remedy)
    if not streams:
        _refuse(query, query.tables()[0], "--table provides every table of the query", "leave the stream's table out")
    if len(streams) > 1:
        names = " and ".join(table.name for table in streams)
        _refuse(query, streams[1], f"{names} could each be the stream", "provide the static tables with --table")
    (stream,) = streams
    if stream.name.lower() in given:
        remedy = f"leave --table {stream.name} out: --source provides it"
        _refuse(query, stream, f"{stream.name} has a window, so it is the stream", remedy)
    return str(stream.name)


def _refuse(query: Query, table: exp.Table, problem: str, remedy: str) -> NoReturn:
    raise node_error(query, table.this, "which-stream", problem, remedy, length=len(table.name))
