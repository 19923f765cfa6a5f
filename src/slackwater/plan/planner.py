"""Makes the plan of a query: checks the query against itself and the catalog, and chooses path and method."""

from __future__ import annotations

from slackwater.language import Late, Measure, Query, Window
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.catalog import Catalog
from slackwater.plan.filter_first import filter_first
from slackwater.plan.method_choice import choose_method, completeness_promise, method_options
from slackwater.plan.name_checks import unknown_call
from slackwater.plan.names import table_name
from slackwater.plan.path_choice import (
    check_ordered_path,
    choose_path,
    is_sharded,
    pane_layout,
    slack_in_rows,
    slack_obstacle,
    window_kind,
)
from slackwater.plan.plan import Kind, Path, Plan, Shape
from slackwater.plan.promise_checks import (
    check_error,
    check_late,
    check_promise,
    check_punctuations,
    check_without_window,
)
from slackwater.plan.rewriting import SHED_WEIGHT
from slackwater.plan.shape import decompose_select, template_without_window
from slackwater.plan.window_checks import attribute_measure, check_extents, resolve_columns, windowing_attribute
from slackwater.plan.windowed_stream import WindowedStream, find_windowed_stream


def make_plan(query: Query, catalog: Catalog | None = None) -> Plan:
    """Make the plan of a query.

    Raises ``QueryTextError``, which points at the contradiction. The columns of a stream that is not in the catalog
    are not checked here; Spark reports those errors later.

    >>> from slackwater.language import parse
    >>> make_plan(parse("SELECT MAX(v) FROM S [RANGE 1 minute SLIDE 1 second WATTR ts]")).panes_per_window
    60
    """
    stream, attribute, measure = plan_stream(find_windowed_stream(query, catalog or Catalog()))
    window = stream.window
    kind = window_kind(window)
    check_error(stream, kind)
    # Windows in tuples hold the rows that were kept, so shedding needs no correction.
    shed = window.delay_ms is not None and kind is not Kind.TUPLES
    if kind is Kind.NONE:
        template_without_window(stream.query, attribute)  # refuses what is never final
    aggregates, shape = _decompose(stream, attribute, kind, shed)
    obstacle = slack_obstacle(window, aggregates, shape) if slack_in_rows(window) else None
    slack_by_row = slack_in_rows(window) and obstacle is None
    path = choose_path(kind, slack_by_row)
    conditions = filter_first(stream, attribute) if window.after_where else ()
    late = window.late or Late.COUNT
    check_late(stream, late, path, aggregates, shape)
    if kind is Kind.SESSION and shape is not None and not shape.keys:
        problem = "a session belongs to a group, and the query has none"
        raise stream.clause_error("SESSION", "session-without-group", problem, "add GROUP BY user, or write RANGE")
    if path is Path.ORDERED:
        check_ordered_path(stream, aggregates, shape)
        check_punctuations(stream, kind)
    pane, panes_per_window, windows_per_row = pane_layout(window, kind)
    sharded = is_sharded(window, kind, shape) and not slack_by_row
    copied = path is Path.NATIVE and windows_per_row > 1 and not all(a.mergeable for a in aggregates)
    return Plan(
        query=query,
        stream=table_name(stream.table),
        window=window,
        attribute=attribute,
        measure=measure,
        kind=kind,
        path=path,
        pane=pane,
        panes_per_window=panes_per_window,
        windows_per_row=windows_per_row,
        aggregates=aggregates,
        shape=shape,
        promise=completeness_promise(window),
        method=choose_method(window),
        method_options=method_options(window),
        late=late,
        filter_first=conditions,
        sharded=sharded,
        slack_by_row=slack_by_row,
        notes=(
            *_window_notes(stream, kind, shape, copied=copied),
            *_slack_notes(window, slack_by_row, obstacle),
            *_promise_notes(stream, conditions, shed and shape is not None),
        ),
    )


def plan_stream(stream: WindowedStream) -> tuple[WindowedStream, str | None, Measure | None]:
    """Check the window clause of a stream; return the stream with its columns resolved, its WATTR and its measure."""
    resolved = resolve_columns(stream)
    attribute = windowing_attribute(resolved)
    measure = attribute_measure(resolved, attribute)
    check_extents(resolved, measure)
    check_promise(resolved, measure)
    return resolved, attribute, measure


def _decompose(
    stream: WindowedStream, attribute: str | None, kind: Kind, shed: bool
) -> tuple[tuple[Aggregate, ...], Shape | None]:
    """Decompose the SELECT of a windowed query. Spark runs a query without a window as it is."""
    if kind is Kind.NONE:
        check_without_window(stream)
        return (), None
    columns = () if stream.known is None else tuple(stream.known.columns)
    weight = SHED_WEIGHT if shed else None
    aggregates, shape = decompose_select(
        stream.query,
        stream.table,
        attribute or "",
        weight,
        columns,
        per_window=choose_path(kind, slack_by_row=False) is Path.NATIVE,
    )
    if not aggregates:
        raise stream.window_error(
            "nothing-to-aggregate",
            f"the window has no aggregate{unknown_call(stream.query)}",
            "select COUNT(*), MAX(…) …, or remove RANGE to get the rows under the promise",
        )
    return aggregates, shape


def _window_notes(stream: WindowedStream, kind: Kind, shape: Shape | None, *, copied: bool) -> list[str]:
    notes = []
    if kind is Kind.TUPLES and not stream.window.per:
        notes.append("tuples are counted in one total order: one shard, whatever the size of the cluster")
    if kind in (Kind.PER_ROW, Kind.LANDMARK) and not (shape and shape.keys):
        notes.append("without GROUP BY, one shard sorts all rows")
    if kind is Kind.LANDMARK:
        notes.append("a landmark window grows forever; only its aggregates are kept, not its rows")
    if copied:
        notes.append("an aggregate cannot be merged: every row is copied into each of its windows")
    return notes


def _slack_notes(window: Window, by_row: bool, obstacle: str | None) -> list[str]:
    if obstacle is not None:
        rule = "each micro-batch is judged by one heartbeat, so its rows are held beside those of SLACK"
        return [f"SLACK cannot judge row by row, because {obstacle}: {rule}"]
    if not by_row:
        return []
    notes = ["SLACK in rows is one buffer for the whole stream: one shard, whatever the size of the cluster"]
    if window.arrival is None:
        notes.append("without ARRIVAL the rows of a micro-batch arrive together: none of them makes another one late")
    return notes


def _promise_notes(stream: WindowedStream, conditions: tuple[str, ...], estimated: bool) -> list[str]:
    query = stream.query
    notes = []
    if stream.window.delay_ms is not None:
        place = "after WHERE" if conditions else "at the entry"
        notes.append(f"DELAY: rows are shed {place} when the delay is about to exceed its bound")
    if conditions:
        rows = f"the rows where {' AND '.join(conditions)}"
        notes.append(f"AFTER WHERE: heartbeat, drop ratio and ledger are those of {rows}")
    if estimated:
        notes.append("COUNT, SUM and AVG are estimates over all rows, including shed ones, as doubles")
    if query.precision is not None:
        notes.append("WITHIN: evaluated again when the answer may have left its bound, not at every tick")
    if query.with_error:
        notes.append("WITH ERROR: COUNT, SUM and AVG come with the standard error caused by shedding")
    return notes
