"""Reads a progress event as JSON, in a few calls.

PySpark reads it through Py4J: a call per field, several per entry of a map, and pickle for the observed metrics.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener

_OFFSETS = ("startOffset", "endOffset", "latestOffset")
_PIECE = 7_000
"""Characters that Py4J writes at once."""


class JsonProgressListener(StreamingQueryListener):
    """A listener that gets progress events as JSON.

    Only speed depends on it: in a session without Py4J events are JSON already, and with a PySpark that keeps the Java
    side of a listener elsewhere it is a listener like any other.
    """

    @property
    def _jlistener(self) -> Any:
        """The Java side, for which PySpark asks when the listener is added or removed."""
        if not hasattr(self, "_jlistenerobj"):
            with contextlib.suppress(Exception):
                jvm: Any = SparkContext._jvm
                wrapper = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
                self._jlistenerobj = wrapper(_JsonEvents(self))
        return super()._jlistener


class _JsonEvents(JStreamingQueryListener):
    """What Spark calls."""

    def onQueryProgress(self, jevent: Any) -> None:
        self.pylistener.onQueryProgress(progress_event(jevent))


def progress_event(java_event: Any) -> QueryProgressEvent:
    """The event, with dictionaries for rows nested in observed metrics.

    Where JSON lacks a field (a rate that is not a number, say), PySpark reads the event.
    """
    try:
        progress = json.loads(_text_of(java_event.progress()))
        for source in progress["sources"]:
            # Spark puts an offset that is JSON into the event as it is; not every PySpark makes it a text again.
            source |= {key: _as_text(source.get(key)) for key in _OFFSETS}
        return QueryProgressEvent.fromJson({"progress": progress})
    except Exception:
        return QueryProgressEvent.fromJObject(java_event)


def _text_of(java_progress: Any) -> str:
    """The event as JSON, in pieces. Py4J writes 8 KB at once, and waits 40 ms before it writes the rest of a text."""
    jvm: Any = SparkContext._jvm
    text = jvm.java.lang.StringBuilder().append(java_progress)  # its toString is JSON
    length = text.length()
    return "".join(text.substring(at, min(at + _PIECE, length)) for at in range(0, length, _PIECE))


def _as_text(offset: Any) -> str:
    return offset if isinstance(offset, str) else json.dumps(offset)
