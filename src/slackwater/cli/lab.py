"""``slackwater lab``: experiments on recorded streams."""

from __future__ import annotations

from slackwater.cli.lazy import LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "disorder": ("slackwater.cli.lab_disorder", "Compare disorder control methods on a stream."),
    "standing": ("slackwater.cli.lab_standing", "Defer standing queries over recorded values."),
    "shedding": ("slackwater.cli.lab_shedding", "Compare load shedding laws on recorded arrivals."),
}

command = LazyGroup(
    "lab",
    VERBS,
    """Try methods on recorded streams, without Spark.

    \b
    Examples:
      slackwater lab disorder --generated step --drop-ratio 1%
      slackwater lab shedding arrivals.csv --target-delay 2s --capacity 500
      slackwater lab standing prices.parquet --key symbol --event-time ts --value close --within 0.5 --confidence 95%
    """,
)
