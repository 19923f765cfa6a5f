"""Prints a plan as stable text: how it is computed, what it promises, what it costs."""

from __future__ import annotations

from slackwater.control.deferral import Deferral
from slackwater.control.deferral.scheduler import DEFAULT_ORDER
from slackwater.language import Late, Measure, Precision, Query, print_query
from slackwater.language.printer import print_extent, print_utility
from slackwater.plan.catalog import Catalog
from slackwater.plan.combined import CombinedPlan, StreamPart, plan_query_text
from slackwater.plan.method_choice import FIXED_SLACK
from slackwater.plan.plan import Kind, Path, Plan
from slackwater.plan.standing import ANSWER_COLUMNS, StandingShape, standing_shape
from slackwater.units import duration_text, percent

_LATE = {
    Late.COUNT: "counted in the ledger (LATE COUNT)",
    Late.PANES: "published as partial aggregates of the windows they missed, marked late (LATE PANES)",
    Late.ROWS: "added to the results, with the windows they missed and by how much (LATE ROWS)",
}


def explain(plan: Plan) -> str:
    """Print a plan, one fact per line. Equal plans give equal texts.

    >>> from slackwater.language import parse
    >>> from slackwater.plan import make_plan
    >>> print(explain(make_plan(parse("SELECT MAX(v) FROM S [RANGE 30 seconds WATTR ts]"))).splitlines()[2])
    window      per row, the last 30 seconds: (t − 30 seconds, t], one result per row
    """
    measure = f" (a {plan.measure.value})" if plan.measure is not None else ""
    lines = [
        ("query", print_query(plan.query)),
        ("stream", f"{plan.stream}, ordered by {plan.attribute or 'its time column'}{measure}"),
        ("window", _window(plan)),
        ("path", _path(plan)),
    ]
    for number, aggregate in enumerate(plan.aggregates):
        how = aggregate.description if plan.path is Path.NATIVE else "by the window operator"
        how = "by Spark, per session" if plan.kind is Kind.SESSION else how
        lines.append(("aggregates" if number == 0 else "", f"{aggregate.sql}: {how}"))
    lines += [("promise", _promise(plan)), ("method", _method(plan))]
    if plan.window.slack is not None:
        lines.append(("slack", _slack(plan)))
    if plan.window.sources:
        lines.append(("sources", _sources(plan)))
    lines += [("arrival", _arrival(plan)), ("late rows", _LATE[plan.late])]
    if plan.window.delay_ms is not None:
        lines.append(("delay", f"at most {duration_text(plan.window.delay_ms)}; {_shed(plan)}"))
    if plan.query.precision is not None:
        lines.append(("precision", _precision(plan.query.precision)))
    lines += [("cost", _cost(plan)), ("results", _results(plan))]
    lines += [("note", note) for note in plan.notes]
    return _join(lines)


def explain_query(query: Query, catalog: Catalog | None = None) -> str:
    """Plan a query without WITHIN and print the plan."""
    plan = plan_query_text(query, catalog)
    return explain(plan) if isinstance(plan, Plan) else explain_combined(plan)


def explain_combined(plan: CombinedPlan) -> str:
    """Print the plan of a query with several windows: the query, how streams are joined, and each part."""
    lines = [("query", print_query(plan.query)), *(("join", words) for words in plan.joins)]
    parts = []
    for number, part in enumerate(plan.parts, 1):
        own = explain(part.plan).splitlines()[1:]
        if part.plan.path is Path.ROWS and plan.joins:
            own = [_joined_fact(part, line) for line in own]
        parts.append("\n".join([f"part {number}      {part.name}", *own]))
    return "\n".join([_join(lines), *parts])


def _joined_fact(part: StreamPart, line: str) -> str:
    """A line of the plan of a joined stream; its window and its cost are those of the join."""
    copies = part.copies
    if line.startswith("window ") and copies is not None:
        length, slide = duration_text(copies.length_ms), duration_text(copies.slide_ms)
        return f"window      {length} every {slide}, joined with the other windows of the same end"
    if line.startswith("window "):
        return "window      rows, until no row of the others can meet them"
    if line.startswith("cost "):
        held = (
            "each row once for each of its open windows" if copies is not None else "each row while others can meet it"
        )
        return f"cost        state: {held}"
    return line


def explain_standing(query: Query, catalog: Catalog, stream: str | None = None, value: str | None = None) -> str:
    """Print a standing query, one fact per line.

    ``stream`` defaults to the table with a window, else to the first table. ``value`` is the value column that the
    stream was registered with, if any.
    """
    tables = [table for table, _ in query.windowed()] or query.tables()
    name = stream or (tables[0].name if tables else "")  # a query without tables is refused below
    known = catalog.find(name)
    shape = standing_shape(query, name, None if known is None else list(known.columns), value)
    time = shape.time or (None if known is None else known.time) or "its time column"
    assert query.precision is not None
    weights = "every stream that passes the filter is a member of its group"
    if shape.table is not None and shape.join is not None:
        weights = f"{shape.table}, by {shape.join[0]}: {shape.weight}"
    return _join(
        [
            ("query", print_query(query)),
            ("stream", f"{shape.stream}, ordered by {time}"),
            ("aggregate", _standing_aggregate(shape)),
            ("window", _standing_window(shape)),
            ("weights", weights),
            ("path", "standing: evaluated when the answer may have left its bound, not at every tick"),
            ("precision", _precision(query.precision)),
            ("deferral", _deferral(shape.deferral or Deferral())),
            *_standing_promises(shape),
            ("results", ", ".join([*(key for key, _ in shape.keys), "at", shape.result, *ANSWER_COLUMNS])),
        ]
    )


def _standing_promises(shape: StandingShape) -> list[tuple[str, str]]:
    """The other promises on the stream."""
    lines = []
    if shape.drop_ratio is not None:
        bound = f"at most {percent(shape.drop_ratio)} of the rows late" if shape.drop_ratio else "best effort"
        lines.append(("promise", f"{bound}; rows wait for the heartbeat and are taken in the order of their times"))
    if shape.delay_ms is not None:
        lines.append(("delay", f"at most {duration_text(shape.delay_ms)} on average; rows are shed to keep it"))
    return lines


def _deferral(deferral: Deferral) -> str:
    """The method, then the options in the order of the paper."""
    capacity, order = deferral.capacity, deferral.order or DEFAULT_ORDER
    limit = "the measured processor time" if capacity is None else f"{capacity} evaluations per shard and micro-batch"
    facts = [f"{deferral.method}, estimated from the last {deferral.k} rows of each stream"]
    if deferral.t_max_ms is not None:
        facts.append(f"at least every {duration_text(deferral.t_max_ms)}")
    if deferral.while_interrupted_ms is not None:
        facts.append(f"answers every {duration_text(deferral.while_interrupted_ms)} while a stream is silent")
    if deferral.value_and_drift:
        facts.append("answers move with their drift")
    if deferral.sum_of_errors:
        facts.append("the errors of silent streams are added")
    return ", ".join([*facts, f"{order} first beyond {limit}"])


def _standing_aggregate(shape: StandingShape) -> str:
    linear = f"{'average' if shape.average else 'sum'} of {shape.value}" if shape.counts is None else "count of streams"
    return linear if shape.extreme is None else f"{shape.extreme} of the {linear}"


def _standing_window(shape: StandingShape) -> str:
    if shape.extreme is None:
        return "the newest values"
    return f"since {shape.landmark}" if shape.window_ms is None else f"the last {duration_text(shape.window_ms)}"


def _join(lines: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:<11} {text}" for name, text in lines) + "\n"


def _precision(precision: Precision) -> str:
    bound = percent(precision.bound) if precision.relative else f"{precision.bound:g}"
    return f"within {bound} at {percent(precision.confidence)} confidence"


def _shed(plan: Plan) -> str:
    after = f", after WHERE {' AND '.join(plan.filter_first)}" if plan.filter_first else ""
    if plan.window.shed_by is None:
        return f"rows are shed at random{after}"
    return f"rows are shed by {print_utility(plan.window.shed_by)}, the least useful first{after}"


def _window(plan: Plan) -> str:
    window = plan.window
    length = print_extent(window.range) if window.range is not None else ""
    step = print_extent(window.slide) if window.slide is not None else ""
    if plan.kind is Kind.TUMBLING:
        return f"tumbling, {length}: [start, end), a row is in one window"
    if plan.kind is Kind.SLIDING:
        return f"sliding, {length} every {step}: [start, end), a row is in {plan.windows_per_row:g} windows"
    if plan.kind is Kind.SESSION:
        assert window.session_ms is not None
        return f"session: rows of a group, each less than {duration_text(window.session_ms)} after the one before"
    if plan.kind is Kind.PER_ROW:
        return f"per row, the last {length}: (t − {length}, t], one result per row"
    if plan.kind is Kind.TUPLES:
        narrowed = plan.shape is not None and plan.shape.narrowed
        rows = "of the rows that WHERE and joins leave" if narrowed else "of the whole stream"
        if window.per:
            rows = f"per {', '.join(window.per)}" + (f", {rows}" if narrowed else "")
        return f"the last {length} {rows}, " + (f"every {step}" if step else "one result per row")
    if plan.kind is Kind.LANDMARK:
        steps = f"one result for every {step} with rows" if step else "one result per row"
        return f"landmark, from {window.landmark} on, {steps}"
    return "none: rows pass under the promise"


def _path(plan: Plan) -> str:
    if plan.path is Path.ROWS:
        return "rows: the heartbeat is Spark's watermark, and Spark runs the query"
    if plan.path is Path.ORDERED:
        where = "in shards" if plan.sharded else "in one shard"
        if plan.panes_where_read:
            return f"ordered: panes are built where rows are read, the window operator merges them, {where}"
        return f"ordered: the window operator, {where}"
    if plan.kind is Kind.SESSION:
        return "native: Spark merges rows into sessions"
    if not plan.in_panes:
        return "native: Spark copies each row into its windows and aggregates them (the plain route)"
    if plan.kind is Kind.TUMBLING:
        return "native: Spark aggregates by window"
    assert plan.pane is not None
    panes = f"native: Spark aggregates panes of {print_extent(plan.pane)}, {plan.panes_per_window} make a window"
    windows = plan.windows_per_segment
    return f"{panes}; panes that {windows} neighbouring windows share are merged first" if windows else panes


def _promise(plan: Plan) -> str:
    if plan.window.heartbeat is not None:
        return "made by the stream: its heartbeats mark what is complete"
    if not plan.promise.drop_ratio:
        return "best effort: no promise"
    return f"at most {percent(plan.promise.drop_ratio)} of the rows are late"


def _method(plan: Plan) -> str:
    return plan.method + (f" ({plan.window.heartbeat})" if plan.window.heartbeat is not None else "")


def _sources(plan: Plan) -> str:
    columns = ", ".join(plan.window.sources)
    if plan.method == FIXED_SLACK:
        return f"{columns}, shown in the report: SLACK counts positions in the whole stream"
    return f"one front per {columns}; the lowest one moves the heartbeat"


def _arrival(plan: Plan) -> str:
    arrival = plan.window.arrival
    if arrival is not None and plan.measure is Measure.NUMBER:
        if plan.slack_by_row:
            return f"{arrival}, used by SLACK and DELAY: the heartbeat follows {plan.attribute}"
        return f"{arrival}, used by DELAY and replays only: the heartbeat follows {plan.attribute}"
    return arrival or "the time of the micro-batch"


def _slack(plan: Plan) -> str:
    assert plan.window.slack is not None
    slack = print_extent(plan.window.slack)
    if plan.window.by_punctuations:
        return "0: punctuation mode, rows go into their windows as they arrive and none is held back to be sorted"
    if plan.window.slack.amount == 0:
        return "0: no row is held back, and every row out of order is late"
    if plan.window.slack.measure is not Measure.TIME and not plan.slack_by_row:
        slack += " and the rows of a micro-batch"
    if plan.window.drop_ratio is None:
        return f"{slack}: rows further out of order are late"
    return f"at most {slack} are held back; this limit takes precedence over the drop ratio"


def _cost(plan: Plan) -> str:
    if plan.path is Path.ROWS:
        return "the same as Spark's own watermark"
    if plan.panes_where_read:
        return "state: a few numbers per group and aggregate, and the panes of the wait; each row is touched once"
    if plan.kind is Kind.LANDMARK:
        return "state: a few numbers per group and aggregate, and the rows of the wait; each row is sorted once"
    if plan.path is Path.ORDERED:
        return "state: the rows of one window and of the wait; each row is sorted once"
    if plan.kind is Kind.SESSION:
        return "state: one entry per open session; each row is touched once"
    if plan.kind is Kind.TUMBLING:
        return "state: one entry per group and open window; each row is touched once"
    if plan.in_panes:
        segment, windows = plan.windows_per_segment, plan.windows_per_row
        copies = f", each pane about {segment + windows / segment:.0f} times" if segment else ""
        return (
            f"state: one entry per group and open pane, and per group and open window ({windows:g}); "
            f"each row is touched once{copies}"
        )
    return f"state: one entry per group and open window; each row is touched {plan.windows_per_row:g} times"


def _results(plan: Plan) -> str:
    if plan.shape is None:
        return "the selected columns"
    late = ["late", "parts"] if plan.late is Late.PANES else []
    columns = [name for name, _ in plan.shape.outputs if name not in ("window_start", "window_end")]
    if plan.late is Late.ROWS:
        by = "late_by" if plan.measure is Measure.NUMBER else "late_by_ms"
        late, columns = ["late"], [*columns, by, "missed", "late_row"]
    return ", ".join(["window_start", "window_end", *late, *columns])
