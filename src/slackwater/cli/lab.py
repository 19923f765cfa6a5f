"""``slackwater lab``: the laboratory's verbs."""

from __future__ import annotations

from slackwater.cli.lazy import LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "shedding": ("slackwater.cli.lab_shedding", "Laws of load shedding on recorded arrivals."),
}

command = LazyGroup("lab", VERBS, "Try methods on recorded streams, without Spark.")
