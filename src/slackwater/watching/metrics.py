"""The table of all Prometheus metrics, and how each is read from a series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from slackwater.extras import require
from slackwater.watching.folders import SeriesFinder, registered_folders
from slackwater.watching.outrun import outrun
from slackwater.watching.point import QUANTILES
from slackwater.watching.ports import DEFAULT_METRICS_PORT
from slackwater.watching.precision import FATES, PrecisionCounts
from slackwater.watching.series import Series

if TYPE_CHECKING:
    from slackwater.watching.metrics_server import MetricsServer

LABELS = ("query", "promise")
_STREAMS = 50  # of which a p-value is published: those tested last
Samples = Iterator[tuple[tuple[str, ...], float]]
Read = Callable[[Series], Samples]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric: its name and help text, and how it is read from a series. ``label`` is its additional label."""

    name: str
    help: str
    kind: Literal["gauge", "counter"]
    read: Read
    label: str | None = None


def _single(value: Callable[[Series], float | None]) -> Read:
    def read(series: Series) -> Samples:
        number = value(series)
        if number is not None:
            yield (), float(number)

    return read


def _latest(field: str, scale: float = 1.0) -> Read:
    def value(series: Series) -> float | None:
        number = series.latest(field)
        return None if number is None else number * scale

    return _single(value)


def _for_kind(kind: str, value: Callable[[Series], float | None]) -> Read:
    return _single(lambda series: value(series) if series.about.kind == kind else None)


def _precision(value: Callable[[PrecisionCounts], float | None]) -> Read:
    def read(series: Series) -> float | None:
        counts: PrecisionCounts | None = series.latest("precision")
        return None if counts is None else value(counts)

    return _single(read)


def _rows_by_fate(series: Series) -> Samples:
    if series.about.kind == "precision":
        counts = series.latest("precision") or PrecisionCounts()
        for fate in FATES:
            yield (fate,), getattr(counts, fate)
        return
    for fate in ("on_time", "late", "shed", "invalid"):
        yield (fate,), getattr(series.ledger, fate)


def _lateness(series: Series) -> Samples:
    return _by_quantile(series.recent_lateness_ms())


def _run_lateness(series: Series) -> Samples:
    return _by_quantile(series.latest("run_lateness_ms"))


def _behind(series: Series) -> Samples:
    behind = series.latest("lateness")
    return _by_quantile(None if behind is None else behind.quantiles_ms)


def _by_quantile(quantiles_ms: Sequence[float] | None) -> Samples:
    for quantile, value_ms in zip(QUANTILES, quantiles_ms or (), strict=False):
        yield (f"{quantile:g}",), value_ms / 1e3


def _sources(series: Series) -> Samples:
    for name, source in series.sources.items():
        yield (name,), source.behind_ms / 1e3


def _normality(series: Series) -> Samples:
    for stream, p_value in list(series.normality.items())[-_STREAMS:]:
        yield (stream,), p_value


MEASURES = (
    Measure(
        "slackwater_promise_kept",
        "1 while the promise is kept over the run, 0 if it is broken; absent while nothing is published",
        "gauge",
        _single(lambda s: s.kept),
    ),
    Measure("slackwater_rows", "Rows read, by outcome", "counter", _rows_by_fate, "fate"),
    Measure("slackwater_batches", "Micro-batches reported", "counter", _single(lambda s: s.batches)),
    Measure(
        "slackwater_unreported_batches",
        "Micro-batches committed just before a crash, whose rows are not counted",
        "counter",
        _single(lambda s: s.ledger.unreported_batches),
    ),
    Measure(
        "slackwater_misread_batches",
        "Micro-batches whose rows were not read exactly once, so that their counts may be wrong",
        "counter",
        _single(lambda s: s.ledger.misread_batches),
    ),
    Measure(
        "slackwater_ledger_exact",
        "1 while every row that was read is known to be counted exactly once, else 0",
        "gauge",
        _single(lambda s: s.ledger.exact),
    ),
    Measure(
        "slackwater_promised_drop_ratio",
        "Promised drop ratio",
        "gauge",
        _for_kind("completeness", lambda s: s.about.promised),
    ),
    Measure(
        "slackwater_drop_ratio",
        "late / (on time + late) over the run",
        "gauge",
        _for_kind("completeness", lambda s: s.ledger.drop_ratio),
    ),
    Measure(
        "slackwater_recent_drop_ratio",
        "late / (on time + late) over the last five minutes",
        "gauge",
        _for_kind("completeness", lambda s: s.recent_ledger().drop_ratio),
    ),
    Measure(
        "slackwater_outrun",
        "1 while rows come later than the method learns, or results wait long to earn losses back; else 0",
        "gauge",
        _for_kind("completeness", lambda s: outrun(s) is not None),
    ),
    Measure("slackwater_wait_seconds", "Arrival clock - heartbeat", "gauge", _latest("wait_ms", 1e-3)),
    Measure(
        "slackwater_heartbeat_timestamp_seconds",
        "Heartbeat: rows with an earlier event time are late",
        "gauge",
        _latest("heartbeat_ms", 1e-3),
    ),
    Measure(
        "slackwater_lateness_seconds",
        "Arrival - event time of the rows of the last five minutes, by quantile",
        "gauge",
        _lateness,
        "quantile",
    ),
    Measure(
        "slackwater_run_lateness_seconds",
        "Arrival - event time of the rows of the run, by quantile",
        "gauge",
        _run_lateness,
        "quantile",
    ),
    Measure(
        "slackwater_behind_seconds",
        "How far the rows of the last micro-batch were behind the arrival clock at its end, by quantile",
        "gauge",
        _behind,
        "quantile",
    ),
    Measure(
        "slackwater_batch_span_seconds",
        "Time from the first to the last arrival in the last micro-batch, which adds to the wait",
        "gauge",
        _latest("span_ms", 1e-3),
    ),
    Measure(
        "slackwater_source_behind_seconds",
        "How far the newest row of a source was behind the arrival clock",
        "gauge",
        _sources,
        "source",
    ),
    Measure(
        "slackwater_promised_delay_seconds",
        "Promised mean delay",
        "gauge",
        _for_kind("timeliness", lambda s: s.about.promised),
    ),
    Measure("slackwater_delay_seconds", "Mean delay of the last micro-batch", "gauge", _latest("delay_s")),
    Measure("slackwater_mean_delay_seconds", "Mean delay over the run", "gauge", _latest("mean_delay_s")),
    Measure("slackwater_shed_ratio", "Share of rows shed", "gauge", _latest("shed_ratio")),
    Measure("slackwater_load_rows_per_second", "Rows that arrive", "gauge", _latest("load_per_s")),
    Measure("slackwater_capacity_rows_per_second", "Rows that can be processed", "gauge", _latest("capacity_per_s")),
    Measure("slackwater_backlog_rows", "Rows that have arrived and wait", "gauge", _latest("backlog_rows")),
    Measure(
        "slackwater_source_limit_decides",
        "1 while a limit of the source decides the delay, so that shedding cannot help, else 0",
        "gauge",
        _latest("limit_decides"),
    ),
    Measure("slackwater_row_cost_seconds", "Processing time per row", "gauge", _latest("row_cost_s")),
    Measure("slackwater_batch_duration_seconds", "Duration of the last micro-batch", "gauge", _latest("duration_s")),
    Measure("slackwater_state_rows", "Rows in Spark's state stores", "gauge", _latest("state_rows")),
    Measure("slackwater_results", "Results published", "counter", _latest("results")),
    Measure(
        "slackwater_published",
        "1 once a result was published, else 0; absent where nobody counts results",
        "gauge",
        _single(lambda s: s.published),
    ),
    Measure("slackwater_open_rows", "Rows in windows that are still open", "gauge", _latest("open_rows")),
    Measure("slackwater_late_panes", "Late panes published", "counter", _latest("late_panes")),
    Measure("slackwater_standing_queries", "Standing queries", "gauge", _precision(lambda p: p.queries)),
    Measure(
        "slackwater_standing_withheld_queries",
        "Standing queries without an answer, because one of their streams was never seen",
        "gauge",
        _precision(lambda p: p.withheld),
    ),
    Measure(
        "slackwater_standing_evaluated", "Standing queries evaluated", "counter", _precision(lambda p: p.evaluated)
    ),
    Measure("slackwater_standing_deferred", "Standing queries deferred", "counter", _precision(lambda p: p.deferred)),
    Measure(
        "slackwater_standing_guessed",
        "Standing queries evaluated while one of their streams was silent",
        "counter",
        _precision(lambda p: p.guessed),
    ),
    Measure(
        "slackwater_standing_missed_deadlines",
        "Deadlines of answers that passed without an evaluation",
        "counter",
        _precision(lambda p: p.missed),
    ),
    Measure(
        "slackwater_standing_penalty",
        "Expected extra error of overdue answers (Zhu 2004, Eq. 18)",
        "counter",
        _precision(lambda p: p.penalty),
    ),
    Measure(
        "slackwater_standing_overdue_queries",
        "Standing queries whose deadline is over",
        "gauge",
        _precision(lambda p: p.overdue),
    ),
    Measure(
        "slackwater_standing_postponed",
        "Due queries left to a later micro-batch for want of processor time",
        "counter",
        _precision(lambda p: p.postponed),
    ),
    Measure(
        "slackwater_standing_normality",
        "Shapiro-Wilk p-value of the increments of a stream",
        "gauge",
        _normality,
        "stream",
    ),
    Measure(
        "slackwater_standing_evaluation_seconds",
        "Processor time of evaluations",
        "counter",
        _precision(lambda p: p.evaluation_ms / 1e3),
    ),
    Measure(
        "slackwater_promised_confidence",
        "Promised share of time within the bound",
        "gauge",
        _for_kind("precision", lambda s: s.about.promised or None),
    ),
    Measure(
        "slackwater_fidelity_ratio",
        "Audited share of time within the bound",
        "gauge",
        _precision(lambda p: p.fidelity),
    ),
    Measure(
        "slackwater_hit_ratio",
        "Share of evaluations that found the previous answer still within its bound",
        "gauge",
        _precision(lambda p: p.hit_ratio),
    ),
    Measure(
        "slackwater_last_report_timestamp_seconds",
        "Time of the last report of the query",
        "gauge",
        _single(lambda s: s.seen_ms / 1e3),
    ),
)


def metric_names() -> list[str]:
    """The names of all metrics as a Prometheus query writes them: counters end in ``_total``."""
    return [measure.name + ("_total" if measure.kind == "counter" else "") for measure in MEASURES]


def serve_metrics(port: int = DEFAULT_METRICS_PORT, *, host: str = "127.0.0.1") -> MetricsServer:
    """Serve the metrics of all promises of this process to Prometheus, at ``http://127.0.0.1:<port>/metrics``.

    The metrics are counts, ratios and times; they contain no rows and no query texts. The endpoint needs the extra
    ``watch``. By default it listens on loopback. For a Prometheus on another machine, set ``host`` to the address to
    listen on; then everybody who can reach the address can read the metrics. ``port=0`` takes any free port.
    ``close()`` ends the endpoint.
    """
    require("prometheus_client", purpose="the metrics endpoint")
    from slackwater.watching.metrics_server import MetricsServer

    return MetricsServer(SeriesFinder(registered_folders).find, port, host)
