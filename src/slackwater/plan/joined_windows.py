"""Joins of streams with windows: the conditions that the windows add to a SELECT."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import Extent, Measure, Query, Window, spark_sql
from slackwater.language.printer import print_extent
from slackwater.names import quoted
from slackwater.plan.plan import Plan
from slackwater.plan.rewriting import WINDOW_COLUMNS, aggregate_calls
from slackwater.plan.text_positions import node_error
from slackwater.plan.windowed_stream import WindowedStream


@dataclass(frozen=True, slots=True)
class Joined:
    """A stream of a join: its table and alias, its checked window, and the plan of its rows under the promise."""

    table: exp.Table
    alias: str
    window: Window
    measure: Measure | None
    plan: Plan
    stream: WindowedStream

    def column(self, name: str) -> exp.Column:
        """A column of the stream, qualified and quoted."""
        return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.alias, quoted=True))


def join_by_range(query: Query, select: exp.Select, joined: list[Joined]) -> list[str]:
    """Add to the join conditions that each row meets what its windows hold; return the conditions in words.

    With ``A [RANGE r]`` a row of A is in the window until r after its own time.
    """
    if any(one.window.range is not None for one in joined):
        _refuse_shedding(joined)
    _require_conditions(query, select, joined)
    words = []
    for first, second in itertools.combinations(joined, 2):
        conditions = []
        for one, other in ((first, second), (second, first)):
            extent = one.window.range
            if extent is None:
                continue
            _require_time(one, extent)
            conditions.append(f"{_time(other)} < {_time(one)} + INTERVAL '{extent.amount / 1000:f}' SECOND")
            words.append(f"{other.alias} comes less than {print_extent(extent)} after {one.alias}")
        if conditions:
            _add_condition(query, select, second, " AND ".join(conditions))
    return words


def join_by_window(query: Query, select: exp.Select, joined: list[Joined]) -> float:
    """Join the streams window by window: change the SELECT in place, and return the longest RANGE in milliseconds."""
    _refuse_shedding(joined)
    longest, slide = 0.0, joined[0].window.slide
    for one in joined:
        extent = one.window.range
        if extent is None or one.window.slide is None or slide is None:
            remedy = "give each of them RANGE and SLIDE, or SLIDE to none"
            raise one.stream.window_error("mixed-windows", "only some of the joined streams have SLIDE", remedy)
        _require_time(one, extent)
        if one.window.slide.amount != slide.amount:
            problem = "the joined windows have different SLIDEs, so their ends do not meet"
            raise one.stream.clause_error("SLIDE", "mixed-windows", problem, f"write SLIDE {print_extent(slide)}")
        first = joined[0].window.range
        if first is not None and (extent.amount - first.amount) % slide.amount != 0:
            problem = "the ends of the joined windows do not meet"
            raise one.stream.clause_error("RANGE", "mixed-windows", problem, "make RANGEs differ by multiples of SLIDE")
        longest = max(longest, extent.amount)
    _show_windows(query, select, joined[0])
    for one in joined[1:]:
        condition = f"{spark_sql(one.column('window_end'))} = {spark_sql(joined[0].column('window_end'))}"
        _add_condition(query, select, one, condition)
    return longest


def _show_windows(query: Query, select: exp.Select, first: Joined) -> None:
    """Select the window of the results, and group by it where the SELECT aggregates."""
    star = next((p for p in select.expressions if p.is_star), None)
    if star is not None:
        problem = f"{spark_sql(star)} would repeat the columns of the window"
        raise node_error(query, star, "star", problem, "name the columns")
    for column in select.find_all(exp.Column):
        if column.name.lower() in WINDOW_COLUMNS and column.find_ancestor(exp.Select) is select:
            column.replace(first.column(column.name.lower()))
    edges = [first.column(name) for name in WINDOW_COLUMNS]
    bodies = [projection.unalias() for projection in select.expressions]
    calls = [call for projection in select.expressions for call in aggregate_calls(projection, [])]
    group = select.args.get("group")
    if group is None and calls:
        select.set("group", exp.Group(expressions=[edge.copy() for edge in edges]))
    elif group is not None:
        for edge in edges:
            if edge not in group.expressions:
                group.append("expressions", edge.copy())
    select.set("expressions", [*(edge.copy() for edge in edges if edge not in bodies), *select.expressions])


def _add_condition(query: Query, select: exp.Select, one: Joined, condition: str) -> None:
    """Add a condition to the join that brings the stream in, or to WHERE where the join has none."""
    parsed = exp.condition(condition, dialect="spark")
    join = one.table.find_ancestor(exp.Join)
    if join is None or join.find_ancestor(exp.Select) is not select:
        select.where(parsed, copy=False)
    elif join.args.get("on") is not None:
        join.set("on", exp.and_(join.args["on"], parsed, copy=False))
    elif join.side:
        problem = f"a {join.side} JOIN of two windows needs ON"
        raise node_error(query, one.table, "join-without-on", problem, "write ON a.key = b.key", length=len(one.alias))
    else:
        select.where(parsed, copy=False)


def _require_conditions(query: Query, select: exp.Select, joined: list[Joined]) -> None:
    """Refuse joins that Spark cannot stream: without an equality, or outer ones without a bound on the times."""
    where = select.args.get("where")
    times = {one.plan.attribute.lower() for one in joined if one.plan.attribute is not None}
    for one in joined[1:]:
        join = one.table.find_ancestor(exp.Join)
        if join is None or join.args.get("using"):
            continue
        conditions = [part for part in (join.args.get("on"), where) if part is not None]
        equalities = [equal for part in conditions for equal in part.find_all(exp.EQ)]
        if not any(equal.left.find(exp.Column) and equal.right.find(exp.Column) for equal in equalities):
            problem, remedy = "Spark joins streams by an equality, and there is none", "write ON a.key = b.key AND …"
            raise node_error(query, one.table, "join-without-equality", problem, remedy, length=len(one.alias))
        compared = {column.name.lower() for part in conditions for column in part.find_all(exp.Column)}
        if join.side and not times & compared and not any(other.window.range for other in joined):
            problem = f"a {join.side} JOIN of streams without a bound on their times is never final"
            remedy = "give each stream [RANGE 10 minutes …], or bound their times in ON"
            raise node_error(query, one.table, "join-without-bound", problem, remedy, length=len(one.alias))


def _refuse_shedding(joined: list[Joined]) -> None:
    for one in joined:
        if one.window.delay_ms is not None:
            problem = "results of joined windows cannot be corrected for rows that DELAY sheds"
            raise one.stream.clause_error("DELAY", "delay-in-join", problem, "remove DELAY, or join without windows")


def _time(one: Joined) -> str:
    return f"{quoted(one.alias)}.{quoted(one.plan.attribute or '')}"


def _require_time(one: Joined, extent: Extent) -> None:
    if extent.measure is not Measure.TIME or one.measure is not Measure.TIME:
        problem = f"{print_extent(extent)} is not a time, and only windows in time can be joined"
        raise one.stream.clause_error("RANGE", "join-measure", problem, "write RANGE as a time")
