"""The series as Prometheus metrics: names and units by its conventions, all in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from slackwater.extras import require
from slackwater.watching.folders import Folders, written_folders
from slackwater.watching.point import QUANTILES
from slackwater.watching.ports import DEFAULT_METRICS_PORT
from slackwater.watching.series import Series
from slackwater.watching.standing import Standing

if TYPE_CHECKING:
    from slackwater.watching.metrics_server import MetricsServer

LABELS = ("query", "promise")
Samples = Iterator[tuple[tuple[str, ...], float]]
Read = Callable[[Series], Samples]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric: its name, what it says, and how it is read from a series; with a further label where it has one."""

    name: str
    help: str
    kind: Literal["gauge", "counter"]
    read: Read
    label: str | None = None


def _one(value: Callable[[Series], float | None]) -> Read:
    def read(series: Series) -> Samples:
        number = value(series)
        if number is not None:
            yield (), float(number)

    return read


def _last(field: str, scale: float = 1.0) -> Read:
    def value(series: Series) -> float | None:
        number = series.latest(field)
        return None if number is None else number * scale

    return _one(value)


def _kind(kind: str, value: Callable[[Series], float | None]) -> Read:
    return _one(lambda series: value(series) if series.about.kind == kind else None)


def _standing(value: Callable[[Standing], float | None]) -> Read:
    def of(series: Series) -> float | None:
        standing: Standing | None = series.latest("standing")
        return None if standing is None else value(standing)

    return _one(of)


def _fates(series: Series) -> Samples:
    for fate in ("on_time", "late", "shed", "invalid"):
        yield (fate,), getattr(series.ledger, fate)


def _lateness(series: Series) -> Samples:
    lateness = series.latest("lateness")
    if lateness is not None:
        for quantile, behind_ms in zip(QUANTILES, lateness.quantiles_ms, strict=True):
            yield (f"{quantile:g}",), behind_ms / 1e3


def _sources(series: Series) -> Samples:
    for source, heard in series.sources.items():
        yield (source,), heard.behind_ms / 1e3


MEASURES = (
    Measure(
        "slackwater_promise_kept", "1 while the promise is kept over the run, else 0", "gauge", _one(lambda s: s.kept)
    ),
    Measure("slackwater_rows", "Rows read, by what became of them", "counter", _fates, "fate"),
    Measure("slackwater_batches", "Micro-batches reported", "counter", _one(lambda s: s.batches)),
    Measure(
        "slackwater_unreported_batches",
        "Micro-batches committed just before a crash, whose rows are in no count",
        "counter",
        _one(lambda s: s.ledger.unreported_batches),
    ),
    Measure(
        "slackwater_promised_drop_ratio",
        "The drop ratio that is promised",
        "gauge",
        _kind("completeness", lambda s: s.about.promised),
    ),
    Measure(
        "slackwater_drop_ratio",
        "late / (on time + late) over the run",
        "gauge",
        _kind("completeness", lambda s: s.ledger.drop_ratio),
    ),
    Measure(
        "slackwater_recent_drop_ratio",
        "late / (on time + late) over the last five minutes",
        "gauge",
        _kind("completeness", lambda s: s.ledger_of_the_last().drop_ratio),
    ),
    Measure("slackwater_wait_seconds", "Arrival clock - heartbeat", "gauge", _last("wait_ms", 1e-3)),
    Measure(
        "slackwater_heartbeat_timestamp_seconds",
        "Rows below it are no longer waited for",
        "gauge",
        _last("heartbeat_ms", 1e-3),
    ),
    Measure(
        "slackwater_lateness_seconds",
        "How far the rows of the last micro-batch were behind the arrival clock",
        "gauge",
        _lateness,
        "quantile",
    ),
    Measure(
        "slackwater_source_behind_seconds",
        "How far the freshest row of a source was behind the arrival clock",
        "gauge",
        _sources,
        "source",
    ),
    Measure(
        "slackwater_promised_delay_seconds",
        "The mean delay that is promised",
        "gauge",
        _kind("timeliness", lambda s: s.about.promised),
    ),
    Measure("slackwater_delay_seconds", "Mean delay of the last micro-batch", "gauge", _last("delay_s")),
    Measure("slackwater_mean_delay_seconds", "Mean delay over the run", "gauge", _last("mean_delay_s")),
    Measure("slackwater_shed_ratio", "Share of rows left out at the entry", "gauge", _last("shed_ratio")),
    Measure("slackwater_load_rows_per_second", "Rows arriving", "gauge", _last("load_per_s")),
    Measure("slackwater_capacity_rows_per_second", "Rows that can be processed", "gauge", _last("capacity_per_s")),
    Measure("slackwater_backlog_rows", "Rows that arrived while the last batch ran", "gauge", _last("backlog_rows")),
    Measure("slackwater_row_cost_seconds", "Time a row costs in a micro-batch", "gauge", _last("row_cost_s")),
    Measure("slackwater_batch_duration_seconds", "Duration of the last micro-batch", "gauge", _last("duration_s")),
    Measure("slackwater_state_rows", "Rows in Spark's state stores", "gauge", _last("state_rows")),
    Measure("slackwater_results", "Results published", "counter", _last("results")),
    Measure("slackwater_late_panes", "Late panes published", "counter", _last("late_panes")),
    Measure("slackwater_standing_queries", "Standing queries", "gauge", _standing(lambda s: s.queries)),
    Measure(
        "slackwater_standing_withheld_queries",
        "Standing queries without an answer, since a stream of theirs was never seen",
        "gauge",
        _standing(lambda s: s.withheld),
    ),
    Measure("slackwater_standing_evaluated", "Standing queries evaluated", "counter", _standing(lambda s: s.evaluated)),
    Measure("slackwater_standing_deferred", "Standing queries deferred", "counter", _standing(lambda s: s.deferred)),
    Measure(
        "slackwater_standing_guessed",
        "Standing queries evaluated while a stream of theirs was silent",
        "counter",
        _standing(lambda s: s.guessed),
    ),
    Measure(
        "slackwater_promised_confidence",
        "The share of time within the bound that is promised",
        "gauge",
        _kind("precision", lambda s: s.about.promised or None),
    ),
    Measure(
        "slackwater_fidelity_ratio",
        "Share of time within the bound, as audited",
        "gauge",
        _standing(lambda s: s.fidelity),
    ),
    Measure(
        "slackwater_hit_ratio",
        "Evaluations that found the answer held until then within its bound",
        "gauge",
        _standing(lambda s: s.hit_ratio),
    ),
    Measure(
        "slackwater_last_report_timestamp_seconds",
        "When the query last gave a sign of life",
        "gauge",
        _one(lambda s: s.seen_ms / 1e3),
    ),
)


def metric_names() -> list[str]:
    """The names of all metrics as a query for Prometheus writes them: counters end in ``_total``."""
    return [measure.name + ("_total" if measure.kind == "counter" else "") for measure in MEASURES]


def serve_metrics(port: int = DEFAULT_METRICS_PORT, *, host: str = "127.0.0.1") -> MetricsServer:
    """Serve the metrics of all promises of this process to Prometheus, at ``http://127.0.0.1:<port>/metrics``.

    Counts, ratios and times only: no row and no query text. It listens on loopback; for a Prometheus on another
    machine give the ``host`` to listen on, which everybody who reaches it can then read. ``port=0`` takes any free
    port; ``close()`` ends it.
    """
    require("prometheus_client", purpose="the metrics endpoint")
    from slackwater.watching.metrics_server import MetricsServer

    return MetricsServer(Folders(written_folders).look, port, host)
