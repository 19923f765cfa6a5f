"""The limits per micro-batch that are set on the sources of a DataFrame."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from pyspark.sql import DataFrame

from slackwater.spark.runtime.connect import is_connect
from slackwater.spark.runtime.connect_plan import plan_message, streaming_reads

_LIMIT = re.compile(r"max\w+per(trigger|batch)", re.IGNORECASE)


def source_limits(events: DataFrame) -> tuple[str, ...]:
    """Options such as ``maxFilesPerTrigger=1`` of the sources that a streaming DataFrame reads.

    Spark has no public API for the options of a source, so they are read from the analysed plan through Py4J. A plan
    that does not show them has no known limit.
    """
    found: list[str] = []
    frame: Any = events
    if is_connect(events.sparkSession):
        for read in streaming_reads(plan_message(events)):
            options = read.get("dataSource", {}).get("options", {})
            found += [f"{name}={value}" for name, value in options.items() if _LIMIT.fullmatch(name)]
        return tuple(dict.fromkeys(found))
    with contextlib.suppress(Exception):
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        for number in range(leaves.size()):
            found += [f"{name}={value}" for name, value in _options(leaves.apply(number)) if _LIMIT.fullmatch(name)]
    return tuple(dict.fromkeys(found))


def _options(leaf: Any) -> list[tuple[str, str]]:
    """The options of one source: those of a V1 source are a Scala map, those of a V2 source a Java map."""
    kind = leaf.getClass().getSimpleName()
    if kind == "StreamingRelation":
        entries = leaf.dataSource().options().iterator()
        pairs = []
        while entries.hasNext():
            entry = entries.next()
            pairs.append((str(entry._1()), str(entry._2())))
        return pairs
    if kind == "StreamingRelationV2":
        options = leaf.extraOptions().asCaseSensitiveMap()
        return [(str(name), str(options[name])) for name in options]
    return []
