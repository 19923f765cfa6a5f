"""The sections of the live page: which charts and tables answer which question. This module needs bokeh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.watching import page_tables
from slackwater.watching.age import publication_delay_ms
from slackwater.watching.page_answers import questions_of
from slackwater.watching.page_charts import BLUE, GREY, ORANGE, RED, Chart, LatenessChart, Line, Reading, TimeChart
from slackwater.watching.point import Point
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import Series

_MINUTE_MS = 60_000.0
_SOURCE_COLOURS = (BLUE, ORANGE, "#2f9e6e", "#a855c7", GREY, "#b08900")
Table = Callable[[Series], str]


@dataclass(frozen=True, slots=True)
class Section:
    """A question and what answers it. The tables are by their names; ``wide`` ones take the whole width."""

    question: str
    charts: list[Chart]
    tables: dict[str, Table]
    wide = frozenset({"problem_rows"})


def sections_of(series: Series) -> list[Section]:
    """The sections for the kind of promise, in the order of a reader's questions."""
    parts = {"completeness": _completeness, "timeliness": _timeliness, "precision": _precision}[series.about.kind]
    found = zip(questions_of(series), parts(series), strict=True)
    return [Section(question, charts, tables) for question, (charts, tables) in found]


def layout_of(series: Series) -> tuple[object, ...]:
    """What determines the elements of the page: when it changes, the page is rebuilt."""
    about = series.about
    shown = (bool(series.latest_results.rows), bool(series.sources), charted_sources(series), _knows_lag(series))
    return about.query_id, about.promise, about.kind, *shown


_Parts = list[tuple[list[Chart], dict[str, Table]]]


def _completeness(series: Series) -> _Parts:
    promised, numeric_order = series.about.promised, series.about.numeric_order
    scale, unit = (1.0, "") if numeric_order else (1e-3, " (s)")
    kept: list[Chart] = [
        TimeChart(
            "drop ratio",
            [
                Line("over the run", BLUE, lambda s, p: p.ledger.drop_ratio),
                Line("last minute", ORANGE, lambda s, p: s.ledger_between(p.at_ms - _MINUTE_MS, p).drop_ratio),
                Line("promised", RED, lambda s, p: promised, "dashed"),
            ],
            percent=True,
        ),
        TimeChart("rows per second", [Line("rows", BLUE, _rate(lambda p: p.ledger.input))]),
    ]
    delay = [] if numeric_order else [Line("published after the window's end", ORANGE, _publication_delay, dots=True)]
    age: list[Chart] = [
        TimeChart(f"age of results{unit}", [Line("wait", BLUE, _wait(scale)), *delay]),
        TimeChart(
            "results per second",
            [
                Line("results", BLUE, _rate(lambda p: p.results)),
                Line("late panes", ORANGE, _rate(lambda p: p.late_panes)),
            ],
        ),
    ]
    age += _source_lag(series)
    lost: list[Chart] = [
        TimeChart(
            "lost rows per second",
            [
                Line("late", ORANGE, _rate(lambda p: p.ledger.late)),
                Line("invalid", RED, _rate(lambda p: p.ledger.invalid)),
            ],
        ),
        *([_by_source(series)] if series.sources and not numeric_order else []),
    ]
    why: list[Chart] = [
        TimeChart(
            f"wait and lateness{unit}; dotted: the cause changed",
            [
                Line("wait", BLUE, _wait(scale)),
                Line("99% lateness", ORANGE, _behind(2, scale)),
                Line("median lateness", GREY, _behind(0, scale)),
            ],
            marked=True,
        ),
        *([] if numeric_order else [LatenessChart()]),
        TimeChart("rows in Spark's state", [Line("rows", BLUE, lambda s, p: p.state_rows)]),
    ]
    results: dict[str, Table] = {"results": page_tables.results} if series.latest_results.rows else {}
    sources: dict[str, Table] = {"sources": page_tables.sources} if series.sources else {}
    return [
        (kept, {}),
        (age, {"windows": page_tables.windows, **results}),
        (lost, {"losses": page_tables.losses, **sources, "problem_rows": page_tables.problem_rows}),
        (why, {"decisions": page_tables.decisions}),
    ]


def _timeliness(series: Series) -> _Parts:
    promised = series.about.promised
    delay = TimeChart(
        "delay (s)",
        [
            Line("last batch", ORANGE, lambda s, p: p.delay_s),
            Line("over the run", BLUE, lambda s, p: p.mean_delay_s),
            Line("promised", RED, lambda s, p: p.target_s or promised, "dashed"),
        ],
    )
    load = TimeChart(
        "load and capacity (rows per second)",
        [Line("load", BLUE, lambda s, p: p.load_per_s), Line("capacity", GREY, lambda s, p: p.capacity_per_s)],
        marked=True,
    )
    backlog = TimeChart("backlog (rows)", [Line("backlog", BLUE, lambda s, p: p.backlog_rows)])
    shed = TimeChart("shed", [Line("shed ratio", BLUE, lambda s, p: p.shed_ratio)], percent=True)
    return [
        ([delay], {}),
        ([backlog, *_source_lag(series)], {}),
        ([shed], {}),
        ([load], {"decisions": page_tables.decisions}),
    ]


def _source_lag(series: Series) -> list[Chart]:
    if not _knows_lag(series):
        return []
    return [TimeChart("rows that wait in the source", [Line("rows", BLUE, lambda s, p: p.source_lag_rows)])]


def _knows_lag(series: Series) -> bool:
    return series.last is not None and series.last.source_lag_rows is not None


def _precision(series: Series) -> _Parts:
    promised = series.about.promised
    kept = TimeChart(
        "share of time within the bound",
        [
            Line("audited", BLUE, _counted(lambda s: s.fidelity)),
            Line("when next evaluated", GREY, _counted(lambda s: s.hit_ratio)),
            *([Line("promised", RED, lambda s, p: promised, "dashed")] if promised else []),
        ],
        percent=True,
    )
    duration = TimeChart("duration of a micro-batch (s)", [Line("duration", BLUE, lambda s, p: p.duration_s)])
    deadlines = TimeChart(
        "deadlines per second",
        [
            Line("missed", RED, _rate(lambda p: None if p.precision is None else p.precision.missed)),
            Line("postponed", ORANGE, _rate(lambda p: None if p.precision is None else p.precision.postponed)),
        ],
    )
    queries = TimeChart(
        "standing queries",
        [
            Line("registered", BLUE, _counted(lambda s: s.queries)),
            Line("withheld", ORANGE, _counted(lambda s: s.withheld)),
            Line("overdue", RED, _counted(lambda s: s.overdue)),
        ],
    )
    work = TimeChart(
        "standing queries per second",
        [
            Line("evaluated", BLUE, _rate(lambda p: None if p.precision is None else p.precision.evaluated)),
            Line("deferred", GREY, _rate(lambda p: None if p.precision is None else p.precision.deferred)),
        ],
        marked=True,
    )
    return [
        ([kept], {}),
        ([duration, deadlines], {}),
        ([queries], {}),
        ([work], {"decisions": page_tables.decisions}),
    ]


def _counted(read: Callable[[PrecisionCounts], float | None]) -> Reading:
    return lambda s, p: None if p.precision is None else read(p.precision)


def _by_source(series: Series) -> TimeChart:
    """How far each source is behind; if there are many sources, only the furthest, the median and the newest."""
    names = charted_sources(series)
    if names:
        lines = [Line(name, colour, _behind_of(name)) for name, colour in zip(names, _SOURCE_COLOURS, strict=False)]
    else:
        lines = [
            Line("furthest", ORANGE, _behind_among(lambda sizes: sizes[-1])),
            Line("median", BLUE, _behind_among(lambda sizes: sizes[len(sizes) // 2])),
            Line("newest", GREY, _behind_among(lambda sizes: sizes[0])),
        ]
    return TimeChart("sources: how far behind the arrival clock (s)", lines)


def charted_sources(series: Series) -> tuple[str, ...]:
    """The sources that have their own line: all if there are few, else none."""
    return tuple(sorted(series.sources)) if len(series.sources) <= len(_SOURCE_COLOURS) else ()


def _behind_of(name: str) -> Reading:
    return lambda s, p: next((behind / 1e3 for source, _, behind in p.sources if source == name), None)


def _behind_among(choose: Callable[[list[float]], float]) -> Reading:
    return lambda s, p: choose(sorted(behind / 1e3 for _, _, behind in p.sources)) if p.sources else None


def _wait(scale: float) -> Reading:
    return lambda s, p: None if p.wait_ms is None else p.wait_ms * scale


def _behind(quantile: int, scale: float) -> Reading:
    return lambda s, p: None if p.lateness is None else max(p.lateness.quantiles_ms[quantile], 0.0) * scale


def _rate(count: Callable[[Point], int | None]) -> Reading:
    """The change per second of a count, over the last five seconds."""

    def per_second(series: Series, point: Point) -> float | None:
        before = series.point_at(point.at_ms - 5_000.0)
        now, then = count(point), None if before is None else count(before)
        if before is None or now is None or then is None:
            return None
        return (now - then) / (point.at_ms - before.at_ms) * 1e3

    return per_second


def _publication_delay(series: Series, point: Point) -> float | None:
    delay_ms = publication_delay_ms(point)
    return None if delay_ms is None else delay_ms / 1e3
