"""``slackwater lab``: the laboratory's verbs."""

from __future__ import annotations

from slackwater.cli.lazy import LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "disorder": ("slackwater.cli.lab_disorder", "Compare methods of disorder control on a stream."),
    "standing": ("slackwater.cli.lab_standing", "Defer standing queries over recorded values."),
    "shedding": ("slackwater.cli.lab_shedding", "Laws of load shedding on recorded arrivals."),
}

command = LazyGroup("lab", VERBS, "Try methods on recorded streams, without Spark.")
