"""The listener dispatches to handlers in their order and knows no kind of promise; no JVM needed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from slackwater.control.ledger import Ledger
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry, SeriesOf
from slackwater.spark.runtime.listener import PromiseListener
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.watching.point import Point
from slackwater.watching.series import About, Kind

CALLS: list[str] = []


class Recording(PromiseHandler[Any]):
    """Notes every call and adds one point per micro-batch."""

    kind: ClassVar[Kind] = "completeness"
    metrics_prefix = "recording:"
    folder: Path

    def on_started(self, query_id: str) -> None:
        CALLS.append(f"{type(self).__name__} started {query_id}")

    def on_progress(self, progress: Any) -> list[SeriesEntry]:
        CALLS.append(f"{type(self).__name__} batch {progress.batchId}")
        return [self._entry(spec, metrics["rows"], progress) for spec, metrics in self._observed(progress)]

    def _entry(self, spec: Any, rows: int, progress: Any) -> SeriesEntry:
        about = About(str(progress.id), "query", spec.name, self.kind, 0.01, "method")

        def point_after(last: Point | None) -> Point:
            so_far = last.ledger.on_time if last else 0
            return Point(float(progress.batchId), progress.batchId, Ledger(on_time=so_far + rows))

        return SeriesEntry(about, Mailbox(self.folder), point_after)

    def on_idle(self, query_id: str, now_ms: float) -> None:
        CALLS.append(f"{type(self).__name__} idle {now_ms:.0f}")

    def on_ended(self, query_id: str) -> None:
        CALLS.append(f"{type(self).__name__} ended {query_id}")

    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        found = [series_of(name, Mailbox(self.folder)) for name in self._specs]
        return [SimpleNamespace(series=series) for series in found if series is not None]


class Urgent(Recording):
    kind = "timeliness"
    metrics_prefix = "urgent:"
    order = 0


class Failing(Recording):
    kind = "precision"
    order = -1

    def on_progress(self, progress: Any) -> list[SeriesEntry]:
        raise RuntimeError("a defect")


@pytest.fixture
def listener(tmp_path: Path) -> PromiseListener:
    CALLS.clear()
    Recording.folder = tmp_path
    session: Any = SimpleNamespace(streams=SimpleNamespace(active=[]))
    return PromiseListener(session)


def event(**values: Any) -> Any:
    return SimpleNamespace(**values)


def progress(batch: int, **rows: int) -> Any:
    metrics = {key.replace("__", ":"): SimpleNamespace(asDict=lambda n=n: {"rows": n}) for key, n in rows.items()}
    return event(progress=SimpleNamespace(id="q", batchId=batch, observedMetrics=metrics))


def test_handlers_hear_of_every_event_in_their_order(listener: PromiseListener) -> None:
    listener.handler(Recording)
    listener.handler(Urgent)
    listener.onQueryStarted(event(id="q"))
    listener.onQueryProgress(progress(0))
    listener.onQueryIdle(event(id="q", timestamp="1970-01-01T00:00:05Z"))
    listener.onQueryTerminated(event(id="q", exception=None))
    heard = ["started q", "batch 0", "idle 5000", "ended q"]
    assert [f"{handler} {what}" for what in heard for handler in ("Urgent", "Recording")] == CALLS


def test_a_handler_is_made_once(listener: PromiseListener) -> None:
    assert listener.handler(Recording) is listener.handler(Recording)


def test_fresh_names_skip_those_that_are_taken(listener: PromiseListener) -> None:
    for expected in ("ts-1", "ts-2"):
        name = listener.handler(Recording).fresh_name("ts")
        assert name == expected
        listener.add(Recording, SimpleNamespace(name=name))


def test_one_history_feeds_the_reports(listener: PromiseListener) -> None:
    listener.add(Recording, SimpleNamespace(name="p"))
    listener.onQueryStarted(event(id="q"))
    for batch, rows in enumerate((3, 4)):
        listener.onQueryProgress(progress(batch, recording__p=rows, recording__other=9, urgent__p=9))
    (report,) = listener.reports("q")["completeness"]
    assert report.series is not None
    assert [point.ledger.on_time for point in report.series.points] == [3, 7]
    assert listener.reports("another query") == {}


def test_a_handler_that_fails_stops_neither_the_others_nor_the_query(
    listener: PromiseListener, caplog: pytest.LogCaptureFixture
) -> None:
    listener.add(Recording, SimpleNamespace(name="p"))
    listener.handler(Failing)
    listener.onQueryStarted(event(id="q"))
    listener.onQueryProgress(progress(0, recording__p=3))
    listener.wait_for_batch("q", 0, timeout_s=0.0)
    assert "[promise-not-updated] batch 0 of query q" in caplog.text
    (report,) = listener.reports("q")["completeness"]
    assert report.series is not None and report.series.ledger.on_time == 3
