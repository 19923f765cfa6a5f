"""The query around windows and promised streams: what Spark cannot stream is refused or rewritten here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import cast

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.plan.ctes import definition_of
from slackwater.plan.rewriting import WINDOW_COLUMNS, aggregate_calls
from slackwater.plan.text_positions import find_words, node_error, position_error, start_of
from slackwater.plan.unsupported import clause_words
from slackwater.plan.window_ranks import TOP_N, rank_calls, rewrite_ranks

_WINDOW_CALLS = {"WINDOW", "SESSION_WINDOW", "WINDOW_TIME"}
# By words in an expression over an event time: the period that it names.
_PERIODS = (
    (("mm", "MINUTE", "minute"), "1 minute"),
    (("HH", "HOUR", "hour"), "1 hour"),
    (("dd", "DAY", "day", "AS DATE", "TO_DATE", "DATE("), "1 day"),
)
_ENDLESS = {"order": TOP_N, "limit": TOP_N, "offset": TOP_N, "sort": "remove SORT BY", "cluster": "remove CLUSTER BY"}


def finish_outer(
    query: Query,
    whole: exp.Query,
    streams: Collection[exp.Table],
    times: Collection[str | None] = (),
    *,
    windows_are_times: bool = True,
) -> exp.Query:
    """Check and rewrite the SELECTs of ``whole`` that read a stream; return the tree.

    ``streams`` are the tables that stand for streams or results of windows, ``times`` their event-time columns; None
    among them is one that is not known. ``windows_are_times``: the results of windows carry the watermark.
    """
    top = exp.Subquery(this=whole)  # so that the outermost SELECT can be replaced too
    known = {id(table) for table in streams}
    known_times = [time for time in times if time is not None]
    names = _event_times(whole, [*known_times, *(WINDOW_COLUMNS if windows_are_times else ())])
    selects = [select for select in whole.find_all(exp.Select, bfs=False) if _reads_stream(select, known)]
    for select in selects:
        _refuse_endless(query, select)
        if None not in times or not select.args.get("group"):
            _check_groups(query, select, names)
    for select in reversed(selects):
        if rank_calls(select):
            rewrite_ranks(query, select, names)
    return cast(exp.Query, top.this)


def _reads_stream(select: exp.Select, known: set[int]) -> bool:
    """Test whether FROM or a join of the SELECT reads a stream."""
    from_ = select.args.get("from_")
    sources = [from_, *(select.args.get("joins") or [])]
    return any(_has_stream(table, known) for part in sources if part is not None for table in _tables(part))


def _tables(part: exp.Expr) -> Iterator[exp.Table]:
    yield from part.find_all(exp.Table)


def _has_stream(table: exp.Table, known: set[int]) -> bool:
    if id(table) in known:
        return True
    cte = definition_of(table)
    if cte is None or table.find_ancestor(exp.CTE) is cte:
        return False
    return any(_has_stream(inner, known) for inner in cte.this.find_all(exp.Table))


def _event_times(whole: exp.Query, times: Collection[str]) -> frozenset[str]:
    """The names of columns that are event times, also under the aliases that the query gives them."""
    names = {time.lower() for time in times}
    while True:
        aliases = {alias.alias.lower() for alias in whole.find_all(exp.Alias) if _is_event_time(alias.unalias(), names)}
        if aliases <= names:
            return frozenset(names)
        names |= aliases


def _is_event_time(body: exp.Expr, names: Collection[str]) -> bool:
    if isinstance(body, exp.Column):
        return body.name.lower() in names
    called = body.name if isinstance(body, exp.Anonymous) else body.sql_name() if isinstance(body, exp.Func) else ""
    return called.upper() in _WINDOW_CALLS and any(c.name.lower() in names for c in body.find_all(exp.Column))


def _refuse_endless(query: Query, select: exp.Select) -> None:
    for argument, remedy in _ENDLESS.items():
        if select.args.get(argument):
            words = clause_words(argument)
            position = find_words(query.text, words, after=start_of(select))
            problem = f"{words} needs all results, but a stream has no end"
            raise position_error(query, position, "not-in-a-stream", problem, remedy)


def _check_groups(query: Query, select: exp.Select, names: frozenset[str]) -> None:
    """Refuse an aggregation that is never final; make ``window_end`` a key where only ``window_start`` is one."""
    group = select.args.get("group")
    calls = [call for projection in select.expressions for call in aggregate_calls(projection, [])]
    calls = [call for call in calls if call.find_ancestor(exp.Window) is None]
    if group is None and not calls:
        return
    if group is not None and group.args.get("all"):
        return
    keys = [_key(select, key) for key in (group.expressions if group is not None else [])]
    timed = [key for key in keys if _is_event_time(key, names)]
    if not timed:
        at: exp.Expr = calls[0] if calls else group.expressions[0] if group is not None else select
        problem = f"{spark_sql(at)} over an endless stream is never final"
        remedy = _period_remedy(keys, names) or (
            "give the stream a window, as in [RANGE 10 seconds SLIDE 10 seconds], or add window_end to GROUP BY"
        )
        raise node_error(query, at, "aggregate-without-window", problem, remedy, length=len(spark_sql(at)))
    columns = [key for key in timed if isinstance(key, exp.Column)]
    starts = [key for key in columns if key.name.lower() == "window_start"]
    if group is not None and starts and len(starts) == len(timed):
        group.append("expressions", exp.column("window_end", table=starts[0].table or None))


def _period_remedy(keys: list[exp.Expr], names: frozenset[str]) -> str | None:
    """What to write instead of a key such as ``DATE_FORMAT(ts, 'yyyy-MM-dd')``, which is a period of an event time."""
    for key in keys:
        columns = list(key.find_all(exp.Column))
        period = next((period for words, period in _PERIODS if any(word in spark_sql(key) for word in words)), None)
        if period and columns and all(c.name.lower() in names for c in columns):
            return (
                f"Spark does not know when {spark_sql(key)} is over: write [RANGE {period} SLIDE {period}], and group "
                "by the other columns only"
            )
    return None


def _key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """A group key; a number or the name of an output is replaced by the selected expression."""
    if key.is_int and 1 <= int(key.name) <= len(select.expressions):
        return cast(exp.Expr, select.expressions[int(key.name) - 1].unalias())
    if isinstance(key, exp.Column) and not key.table:
        named = (p.unalias() for p in select.expressions if isinstance(p, exp.Alias) and p.alias == key.name)
        return next(named, key)
    return key
