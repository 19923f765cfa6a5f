"""The stream of a query that has a window: the subject of all checks of the planner."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import Query, Window
from slackwater.language.text_errors import text_error
from slackwater.plan.catalog import Catalog, Stream
from slackwater.plan.ctes import definition_of
from slackwater.plan.text_positions import node_error, position_error


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """A table of a query with its window; ``known`` is its entry in the catalog, or None."""

    query: Query
    table: exp.Table
    window: Window
    known: Stream | None

    def clause_error(self, keyword: str, condition: str, problem: str, remedy: str) -> QueryTextError:
        """Build an error that points at a keyword of the window, or at the window if it lacks the keyword."""
        position = self.window.positions.get(keyword)
        if position is None:
            return self.window_error(condition, problem, remedy)
        return position_error(self.query, position, condition, problem, remedy)

    def window_error(self, condition: str, problem: str, remedy: str) -> QueryTextError:
        """Build an error that points at the first keyword of the window."""
        position = min(self.window.positions.values(), default=(0, 1))
        return position_error(self.query, position, condition, problem, remedy)


def find_windowed_stream(query: Query, catalog: Catalog) -> WindowedStream:
    """Return the stream that has the window. A query must have exactly one, and it cannot be a CTE."""
    found = [WindowedStream(query, table, window, catalog.find(table.name)) for table, window in query.windowed()]
    if not found:
        problem, remedy = "no stream in this query has a window", "write FROM name [RANGE 5 minutes]"
        raise text_error(query.text, query.start, "no-window", problem, remedy)
    if len(found) > 1:
        remedy = "keep one of the windows and join its result"
        raise found[1].window_error("two-streams", "two streams have a window", remedy)
    refuse_cte(query, found[0].table)
    return found[0]


def refuse_cte(query: Query, table: exp.Table) -> None:
    """Refuse a window on a CTE."""
    if definition_of(table) is not None:
        raise node_error(
            query,
            table.this,
            "window-on-cte",
            f"{table.name} is a CTE, and a window must follow a stream",
            f"put the window after the stream that {table.name} reads, or register {table.name} with sw.stream",
            length=len(table.name),
        )
