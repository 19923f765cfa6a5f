"""The interface between the listener and the promises: one handler per kind of promise and session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.control.ledger import Ledger
from slackwater.names import safe_name
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.watching.point import Point
from slackwater.watching.series import About, Kind, Series


class NamedSpec(Protocol):
    """A promise as it was made on a DataFrame."""

    @property
    def name(self) -> str:
        """The promise's name, unique within its kind and session."""

    @property
    def folder(self) -> Path:
        """Where the promise keeps its series on this machine."""


class PromiseReport(Protocol):
    """What ``report`` says about one promise."""

    @property
    def name(self) -> str:
        """The promise's name."""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept so far."""

    @property
    def verdict(self) -> str:
        """The same in words; ``broken`` and ``nothing published yet`` are the ones of every kind."""

    @property
    def ledger(self) -> Ledger:
        """The promise's count of rows."""

    @property
    def series(self) -> Series | None:
        """The promise's history."""

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""


@dataclass(frozen=True, slots=True)
class SeriesEntry:
    """One micro-batch for the history of one promise.

    ``mailbox`` says where the history is kept. ``point_after`` makes the point from the one before it, since counts of
    results run over the whole history.
    """

    about: About
    mailbox: Mailbox
    point_after: Callable[[Point | None], Point]


SeriesOf = Callable[[str, Mailbox], Series | None]
"""Finds the history of a promise by its name and where it is kept."""
Spec = TypeVar("Spec", bound=NamedSpec)


class PromiseHandler(ABC, Generic[Spec]):
    """Keeps all promises of one kind in one session.

    The listener calls every method under its lock, so a handler needs none of its own. A call must take milliseconds:
    Spark waits for it before it delivers the next event.
    """

    kind: ClassVar[Kind]
    metrics_prefix: ClassVar[str]
    """Observed metrics of a promise are named by this prefix and the promise's name."""
    order: ClassVar[int] = 1
    """Handlers with a lower number hear of a micro-batch first."""

    def __init__(self, queries: RunningQueries, lock: AbstractContextManager[Any]) -> None:
        self._queries = queries
        self._lock = lock
        self._specs: dict[str, Spec] = {}

    def add(self, spec: Spec) -> None:
        """Take charge of a promise; a later one of the same name replaces it."""
        self._specs[spec.name] = spec

    def folders(self) -> set[Path]:
        """The folders of all promises."""
        return {spec.folder for spec in self._specs.values()}

    def fresh_name(self, base: str) -> str:
        """``base-1``, ``base-2``, …: the first name that no promise of this kind has.

        Names become names of folders, so what is no letter or digit of ASCII is replaced.
        """
        base = safe_name(base)
        number = 1
        while f"{base}-{number}" in self._specs:
            number += 1
        return f"{base}-{number}"

    def on_started(self, query_id: str) -> None:
        """A query starts; Spark has not opened its sources yet."""
        return

    @abstractmethod
    def on_progress(self, progress: StreamingQueryProgress) -> list[SeriesEntry]:
        """Learn from a committed micro-batch; returns what belongs into the history."""

    def on_idle(self, query_id: str, now_ms: float) -> None:
        """A query looked for rows and found none."""
        return

    def on_ended(self, query_id: str) -> None:
        """A query has stopped or failed."""
        return

    def end_stream(self, query_id: str) -> None:
        """The sources of a query have ended: let it publish what it still holds back."""
        return

    def await_recounts(self, query_id: str, timeout_s: float) -> None:
        """Return once what was not reported is counted again as far as possible, or after the timeout.

        This is called without the lock.
        """
        return

    @abstractmethod
    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        """A report for each promise of the query, also before the first micro-batch of a run that goes on."""

    def _observed(self, progress: StreamingQueryProgress) -> Iterator[tuple[Spec, dict[str, Any]]]:
        """The promises whose metrics are in the progress event, with those metrics, in the order they were made."""
        for name, spec in self._specs.items():
            if (metrics := progress.observedMetrics.get(self.metrics_prefix + name)) is not None:
                yield spec, metrics.asDict()
