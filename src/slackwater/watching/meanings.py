"""What each cause of a decision means, in a sentence. The how-to page on decisions has the same sentences."""

from __future__ import annotations

MEANINGS = {
    "starting": "not enough is known yet: it waits for the longest lateness seen",
    "quantile": "the wait is the quantile of lateness that the budget allows",
    "front frame": (
        "the front of the stream, its newest row, allows less than the clock does: the heartbeat follows the front"
    ),
    "held: budget spent": "more rows were late than promised: the wait is longer until the budget is earned back",
    "held: back after a stall": "a stalled stream is delivering its backlog",
    "held: source … is behind": "one source is behind the others and is waited for",
    "held: source … is silent": (
        "a silent source could be holding back more rows than all sources have sent; it is waited for, for"
        " idle_after at most"
    ),
    "held: the method asks for a longer wait": (
        "the heartbeat never retreats: it stays until the method's proposal has caught up"
    ),
    "slack: the buffer is full": "the cap on the buffer (SLACK, slack_rows) decides",
    "method": "a method that gives no reasons decides by its formula",
    "held: no newer row is known": (
        "the heartbeat waits at the newest row seen; after idle_after without a row it follows the clock"
    ),
    "idle: no row has come": "no row has come for idle_after, so the heartbeat follows the clock",
    "max_wait": "your bound decides",
    "min_wait": "your bound decides",
    "shedding: …": "the load is more than the promised delay allows",
    "nothing shed": "the load is below the capacity",
    "nothing shed: … decides the delay": "the limit of the source decides, and shedding cannot help",
    "overloaded: due queries wait for the processor": "there was no time for all that were due",
    "answers stand until they are due": "only those are evaluated whose promise requires it",
    "guessing: streams are silent": "answers use streams that have fallen silent, and say so",
    "withheld: …": "queries need streams that were never seen, and have no answer yet",
}
"""By cause; … stands for a name."""


def meaning_of(cause: str) -> str:
    """The meaning of a cause; empty if it has none here.

    >>> meaning_of("held: source berlin is behind")
    'one source is behind the others and is waited for'
    """
    if cause in MEANINGS:
        return MEANINGS[cause]
    templates = [template.partition("…") for template in MEANINGS if "…" in template]
    return next(
        (MEANINGS[a + b + c] for a, b, c in templates if cause.startswith(a) and cause.endswith(c)),
        "",
    )
