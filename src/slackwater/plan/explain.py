"""A plan as stable text: what will be done, what it promises, what it costs."""

from __future__ import annotations

from slackwater.language import Late, Measure, print_query
from slackwater.language.printer import print_extent
from slackwater.plan.plan import Kind, Path, Plan
from slackwater.units import duration_text, percent

_LATE = {
    Late.COUNT: "counted in the ledger (LATE COUNT)",
    Late.PANES: "published as partial aggregates of the windows they missed, marked late (LATE PANES)",
    Late.ROWS: "delivered beside the results, with the windows missed and by how much (LATE ROWS)",
}


def explain(plan: Plan) -> str:
    """The plan as text: one fact a line, the same text for the same plan.

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
        words = aggregate.words if plan.path is Path.NATIVE else "by the window operator"
        lines.append(("aggregates" if number == 0 else "", f"{aggregate.sql}: {words}"))
    lines += [("promise", _promise(plan)), ("method", _method(plan))]
    if plan.window.slack is not None:
        lines.append(("slack", _slack(plan)))
    if plan.window.sources:
        lines.append(("sources", f"a front for each of {', '.join(plan.window.sources)}; the lowest leads"))
    lines += [("arrival", _arrival(plan)), ("late rows", _LATE[plan.late])]
    if plan.window.delay_ms is not None:
        lines.append(("delay", f"at most {duration_text(plan.window.delay_ms)}"))
    if plan.query.precision is not None:
        precision = plan.query.precision
        bound = percent(precision.bound) if precision.relative else f"{precision.bound:g}"
        lines.append(("precision", f"within {bound} at {percent(precision.confidence)} confidence"))
    lines += [("cost", _cost(plan)), ("results", _results(plan))]
    lines += [("note", note) for note in plan.notes]
    return "\n".join(f"{name:<11} {text}" for name, text in lines) + "\n"


def _window(plan: Plan) -> str:
    window = plan.window
    length = print_extent(window.range) if window.range is not None else ""
    step = print_extent(window.slide) if window.slide is not None else ""
    if plan.kind is Kind.TUMBLING:
        return f"tumbling, {length}: [start, end), a row is in one window"
    if plan.kind is Kind.SLIDING:
        return f"sliding, {length} every {step}: [start, end), a row is in {plan.windows_per_row:g} windows"
    if plan.kind is Kind.PER_ROW:
        return f"per row, the last {length}: (t − {length}, t], one result per row"
    if plan.kind is Kind.TUPLES:
        narrowed = plan.shape is not None and plan.shape.narrowed
        rows = "of the rows that WHERE and joins leave" if narrowed else "of the whole stream"
        if window.per:
            rows = f"per {', '.join(window.per)}" + (f", {rows}" if narrowed else "")
        return f"the last {length} {rows}, " + (f"every {step}" if step else "one result per row")
    if plan.kind is Kind.LANDMARK:
        steps = f"a result for every {step} in which rows came" if step else "one result per row"
        return f"landmark, from {window.landmark} on, {steps}"
    return "none: rows under the promise"


def _path(plan: Plan) -> str:
    if plan.path is Path.ROWS:
        return "rows: the heartbeat is Spark's watermark, the query is Spark's own"
    if plan.path is Path.ORDERED:
        where = "in shards" if plan.sharded else "in one shard"
        if plan.panes_where_read:
            return f"ordered: panes are made where rows are read, the window operator adds them up, {where}"
        return f"ordered: the window operator, {where}"
    if not plan.in_panes:
        return "native: Spark aggregates rows copied into their windows (the plain route)"
    if plan.kind is Kind.TUMBLING:
        return "native: Spark aggregates by window"
    assert plan.pane is not None
    panes = f"native: Spark aggregates panes of {print_extent(plan.pane)}, {plan.panes_per_window} make a window"
    together = plan.windows_per_segment
    return f"{panes}; what {together} neighbours share is put together first" if together else panes


def _promise(plan: Plan) -> str:
    if plan.window.heartbeat is not None:
        return "the stream's own: its heartbeats say what is complete"
    if not plan.promise.drop_ratio:
        return "best effort: none is claimed"
    return f"at most {percent(plan.promise.drop_ratio)} of the rows are late"


def _method(plan: Plan) -> str:
    return plan.method + (f" ({plan.window.heartbeat})" if plan.window.heartbeat is not None else "")


def _arrival(plan: Plan) -> str:
    arrival = plan.window.arrival
    if arrival is not None and plan.measure is Measure.NUMBER:
        return f"{arrival}, for DELAY and replays alone: the heartbeat goes by {plan.attribute}"
    return arrival or "the time of the micro-batch"


def _slack(plan: Plan) -> str:
    assert plan.window.slack is not None
    slack = print_extent(plan.window.slack)
    if plan.window.by_punctuations:
        return "0: punctuation mode, nothing is held back to be put in order"
    if plan.window.slack.amount == 0:
        return "0: nothing is held back, every row out of order is late"
    if plan.window.drop_ratio is None:
        return f"{slack}: rows further out of order are late"
    return f"at most {slack} are held back; this wins over the drop ratio"


def _cost(plan: Plan) -> str:
    if plan.path is Path.ROWS:
        return "what Spark's own watermark costs"
    if plan.panes_where_read:
        return "a few numbers per group and aggregate, and the panes of the wait; each row is touched once"
    if plan.kind is Kind.LANDMARK:
        return "a few numbers per group and aggregate, and the rows of the wait; each row is sorted once"
    if plan.path is Path.ORDERED:
        return "rows of one window and of the wait are kept; each row is sorted once"
    if plan.kind is Kind.TUMBLING:
        return "state: one entry per group and open window; each row is touched once"
    if plan.in_panes:
        together, windows = plan.windows_per_segment, plan.windows_per_row
        dealt = f", each pane some {together + windows / together:.0f} times" if together else ""
        return (
            f"state: one entry per group and open pane, and per group and open window ({windows:g}); "
            f"each row is touched once{dealt}"
        )
    return f"state: one entry per group and open window; each row is touched {plan.windows_per_row:g} times"


def _results(plan: Plan) -> str:
    if plan.shape is None:
        return "what is selected"
    late = ["late", "parts"] if plan.late is Late.PANES else []
    columns = [name for name, _ in plan.shape.outputs if name not in ("window_start", "window_end")]
    if plan.late is Late.ROWS:
        by = "late_by" if plan.measure is Measure.NUMBER else "late_by_ms"
        late, columns = ["late"], [*columns, by, "missed", "late_row"]
    return ", ".join(["window_start", "window_end", *late, *columns])
