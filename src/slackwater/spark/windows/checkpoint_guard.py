"""What the state of a windowed query is made of, in the words of the query."""

from __future__ import annotations

from slackwater.language import Window, print_clause
from slackwater.plan import Plan


def state_identity(plan: Plan) -> dict[str, str]:
    """What must be the same if a query goes on from a checkpoint: each name is followed by its value in messages.

    What decides the heartbeat may change, and so may WHERE, which judges rows before they come to the state.
    """
    shape, window = plan.shape, plan.window
    assert shape is not None
    clause = Window(window.range, window.slide, window.landmark, plan.attribute, window.per)
    return {
        "the window": print_clause(clause),
        "GROUP BY": ", ".join(shape.keys) or "nothing",
        "the aggregates": ", ".join(aggregate.plain for aggregate in plan.aggregates) or "none",
    }
