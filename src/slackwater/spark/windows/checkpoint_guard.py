"""What the state of a windowed query depends on, in the words of the query."""

from __future__ import annotations

from slackwater.language import Window, print_clause
from slackwater.plan import Plan


def state_identity(plan: Plan) -> dict[str, str]:
    """What must not change if a query continues from a checkpoint; messages print each name and its value.

    Whatever decides the heartbeat may change, and so may WHERE, which applies before rows reach the state.
    """
    shape, window = plan.shape, plan.window
    assert shape is not None
    clause = Window(
        range=window.range,
        slide=window.slide,
        landmark=window.landmark,
        attribute=plan.attribute,
        per=window.per,
    )
    identity = {
        "the window": print_clause(clause),
        "GROUP BY": ", ".join(shape.keys) or "nothing",
        "the aggregates": ", ".join(aggregate.plain for aggregate in plan.aggregates) or "none",
    }
    return identity | {"SLACK in rows": "a buffer"} if plan.slack_by_row else identity
