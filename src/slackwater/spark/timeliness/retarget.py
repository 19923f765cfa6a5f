"""``retarget``: another target for the timeliness promise of a running query."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import UnknownName
from slackwater.promises import Duration, Timeliness
from slackwater.spark.runtime.listener import handlers
from slackwater.spark.timeliness.handler import TimelinessHandler
from slackwater.spark.timeliness.tracker import TimelinessSpec


def retarget(query: StreamingQuery, max_delay: Duration | None, *, name: str | None = None) -> None:
    """Change the target of a running query's timeliness promise, from the next micro-batch on.

    The target is written to ``target.txt`` in the promise's folder, where it survives a restart and wins over the
    target in the query. An operator may edit or remove that file instead, or run ``slackwater retarget``. A wrong value
    is refused and changes nothing. Queries that share the promise share its target.

    :param query: a query with ``with_max_delay`` or ``DELAY``.
    :param max_delay: the new target, such as ``"5 seconds"``; None returns to the one in the query.
    :param name: the promise, if the query has several, or if it has not committed a micro-batch yet.
    """
    target = None if max_delay is None else Timeliness.of(max_delay)
    _promise_of(query, name).mailbox.write_target(None if target is None else target.max_delay_s)


def _promise_of(query: StreamingQuery, name: str | None) -> TimelinessSpec:
    specs = [spec for handler in handlers(TimelinessHandler) for spec in handler.specs_of(str(query.id), name)]
    if len(specs) == 1:
        return specs[0]
    if not specs:
        what = "makes no timeliness promise" if name is None else f"makes no timeliness promise {name!r}"
        remedy = "put with_max_delay into its plan; before its first micro-batch, name the promise with name="
        raise UnknownName("no-promise", f"query {query.id} {what}", remedy)
    names = ", ".join(spec.name for spec in specs)
    raise UnknownName("several-promises", f"query {query.id} makes several timeliness promises", f"choose one: {names}")
