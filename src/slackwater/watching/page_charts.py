"""The charts of the live page: Bokeh figures that are updated with new points. This module needs bokeh."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bokeh.models import (
    ColumnDataSource,
    DataRange1d,
    DatetimeTickFormatter,
    FixedTicker,
    HoverTool,
    Legend,
    NumeralTickFormatter,
)
from bokeh.plotting import figure

from slackwater.watching.point import Point, bin_edges_ms
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import MAX_POINTS, Series

HEIGHT = 210
_MINUTE_MS = 60_000.0
_ZERO = "zero"
LIGHT = {"ink": "#4a5568", "grid": "#e2e8f0"}
DARK = {"ink": "#a9b4c4", "grid": "#2d3748"}
BLUE, ORANGE, GREY, RED = "#3b82c4", "#d97706", "#8a94a6", "#d64545"
_SOURCE_COLOURS = (BLUE, ORANGE, "#2f9e6e", "#a855c7", GREY, "#b08900")
Reading = Callable[[Series, Point], float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; ``read`` takes its value from a series and one of its points."""

    name: str
    colour: str
    read: Reading
    dash: str = "solid"


@dataclass
class TimeChart:
    """Lines over time. An update sends only new points to the browser."""

    title: str
    lines: list[Line]
    percent: bool = False
    source: ColumnDataSource = field(init=False)
    figure: Any = field(init=False)
    _until: int = -1

    def __post_init__(self) -> None:
        self.source = ColumnDataSource({"at": [], _ZERO: [], **{line.name: [] for line in self.lines}})
        plot = _figure(self.title, x_axis_type="datetime")
        plot.xaxis.formatter = DatetimeTickFormatter(
            seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M", hourmin="%H:%M", hours="%H:%M", days="%d %b"
        )
        plot.xaxis.ticker.desired_num_ticks = 5
        plot.line("at", _ZERO, source=self.source, line_alpha=0.0)  # gives the axes a range before there are values
        for line in self.lines:
            plot.line(
                "at",
                line.name,
                source=self.source,
                line_color=line.colour,
                line_dash=line.dash,
                line_width=2 if line.dash == "solid" else 1.5,
                legend_label=line.name,
            )
        number_format = "0.[000] %" if self.percent else "0,0.[000]"
        plot.yaxis.formatter = NumeralTickFormatter(format="0.[00]%" if self.percent else "0.[00]a")
        values = [(line.name, f"@{{{line.name}}}{{{number_format}}}") for line in self.lines]
        tooltips = [("", "@at{%H:%M:%S}"), *values]
        plot.add_tools(HoverTool(tooltips=tooltips, formatters={"@at": "datetime"}, mode="vline"))
        plot.legend.visible = len(self.lines) > 1
        self.figure = plot

    def update(self, series: Series) -> None:
        """Add the points that are new since the last call."""
        new = [point for point in series.points if point.batch > self._until]
        if not new:
            return
        self._until = new[-1].batch
        columns: dict[str, list[float]] = {"at": [point.at_ms for point in new], _ZERO: [0.0] * len(new)}
        for line in self.lines:
            columns[line.name] = [_number(line.read(series, point)) for point in new]
        self.source.stream(columns, rollover=MAX_POINTS)


@dataclass
class LatenessChart:
    """A histogram of the lateness of the last minutes, with a line at the wait."""

    source: ColumnDataSource = field(init=False)
    wait: ColumnDataSource = field(init=False)
    figure: Any = field(init=False)

    def __post_init__(self) -> None:
        self.source = ColumnDataSource({"left": [], "right": [], "share": [], "colour": []})
        self.wait = ColumnDataSource({"x": [], "y": []})
        plot = _figure("lateness, last 5 min (s)", x_axis_type="log")
        plot.scatter([0.1, 10.0], [0.0, 0.1], fill_alpha=0.0, line_alpha=0.0)  # gives the axes a range
        plot.quad(
            left="left", right="right", bottom=0, top="share", source=self.source, fill_color="colour", line_color=None
        )
        plot.line(
            "x",
            "y",
            source=self.wait,
            line_color=RED,
            line_dash="dashed",
            line_width=2,
            legend_label="wait; rows to the right are late",
        )
        plot.yaxis.formatter = NumeralTickFormatter(format="0.[0]%")
        plot.xaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-3, 7)])
        plot.xaxis.formatter = NumeralTickFormatter(format="0.[000]a")
        plot.add_tools(HoverTool(tooltips=[("from", "@left{0.[000]} s"), ("rows", "@share{0.[000]%}")]))
        self.figure = plot

    def update(self, series: Series) -> None:
        """Replace the histogram; it has about twenty bars."""
        bins, wait_ms = series.lateness_bins(), series.latest("wait_ms")
        rows = sum(bins.values())
        if not rows:
            return
        edges = [bin_edges_ms(number) for number in bins]
        shares = [count / rows for count in bins.values()]
        self.source.data = {
            "left": [low / 1e3 for low, _ in edges],
            "right": [high / 1e3 for _, high in edges],
            "share": shares,
            "colour": [ORANGE if wait_ms is not None and low >= wait_ms else BLUE for low, _ in edges],
        }
        at = [] if wait_ms is None or wait_ms <= 0 else [wait_ms / 1e3] * 2
        self.wait.data = {"x": at, "y": [0.0, max(shares)][: len(at)]}


Chart = TimeChart | LatenessChart


def charts_of(series: Series) -> list[Chart]:
    """The charts for the kind of promise."""
    if series.about.kind == "completeness":
        return _completeness_charts(series)
    if series.about.kind == "timeliness":
        return _timeliness_charts(series.about.promised)
    return _precision_charts(series.about.promised)


def _completeness_charts(series: Series) -> list[Chart]:
    promised, numeric_order = series.about.promised, series.about.numeric_order
    return [
        TimeChart(
            "drop ratio",
            [
                Line("over the run", BLUE, lambda s, p: p.ledger.drop_ratio),
                Line("last minute", ORANGE, lambda s, p: s.ledger_between(p.at_ms - _MINUTE_MS, p).drop_ratio),
                Line("promised", RED, lambda s, p: promised, "dashed"),
            ],
            percent=True,
        ),
        TimeChart(
            "wait" if numeric_order else "wait and lateness (s)",
            [
                Line("wait", BLUE, _wait(1.0 if numeric_order else 1e-3)),
                Line("99% lateness", ORANGE, _behind(2, numeric_order)),
                Line("median lateness", GREY, _behind(0, numeric_order)),
            ],
        ),
        *([] if numeric_order else [LatenessChart()]),
        *([_by_source(series)] if series.sources and not numeric_order else []),
        TimeChart("rows per second", [Line("rows", BLUE, _rate(lambda p: p.ledger.input))]),
        TimeChart(
            "results per second",
            [
                Line("results", BLUE, _rate(lambda p: p.results)),
                Line("late panes", ORANGE, _rate(lambda p: p.late_panes)),
            ],
        ),
        TimeChart("rows in Spark's state", [Line("rows", BLUE, lambda s, p: p.state_rows)]),
    ]


def _timeliness_charts(promised: float) -> list[Chart]:
    return [
        TimeChart(
            "delay (s)",
            [
                Line("last batch", ORANGE, lambda s, p: p.delay_s),
                Line("over the run", BLUE, lambda s, p: p.mean_delay_s),
                Line("promised", RED, lambda s, p: p.target_s or promised, "dashed"),
            ],
        ),
        TimeChart("shed", [Line("shed ratio", BLUE, lambda s, p: p.shed_ratio)], percent=True),
        TimeChart(
            "load and capacity (rows per second)",
            [Line("load", BLUE, lambda s, p: p.load_per_s), Line("capacity", GREY, lambda s, p: p.capacity_per_s)],
        ),
        TimeChart("backlog (rows)", [Line("backlog", BLUE, lambda s, p: p.backlog_rows)]),
    ]


def _precision_charts(promised: float) -> list[Chart]:
    return [
        TimeChart(
            "share of time within the bound",
            [
                Line("audited", BLUE, _precision(lambda s: s.fidelity)),
                Line("when next evaluated", GREY, _precision(lambda s: s.hit_ratio)),
                *([Line("promised", RED, lambda s, p: promised, "dashed")] if promised else []),
            ],
            percent=True,
        ),
        TimeChart(
            "standing queries per second",
            [
                Line("evaluated", BLUE, _rate(lambda p: None if p.precision is None else p.precision.evaluated)),
                Line("deferred", GREY, _rate(lambda p: None if p.precision is None else p.precision.deferred)),
            ],
        ),
        TimeChart(
            "standing queries",
            [
                Line("registered", BLUE, _precision(lambda s: s.queries)),
                Line("withheld", ORANGE, _precision(lambda s: s.withheld)),
                Line("overdue", RED, _precision(lambda s: s.overdue)),
            ],
        ),
        TimeChart(
            "deadlines per second",
            [
                Line("missed", RED, _rate(lambda p: None if p.precision is None else p.precision.missed)),
                Line("postponed", ORANGE, _rate(lambda p: None if p.precision is None else p.precision.postponed)),
            ],
        ),
        TimeChart("duration of a micro-batch (s)", [Line("duration", BLUE, lambda s, p: p.duration_s)]),
    ]


def paint(charts: Iterable[Chart], dark: bool) -> None:
    """Set the colours of axes and texts to those of the light or dark scheme."""
    scheme = DARK if dark else LIGHT
    for chart in charts:
        plot = chart.figure
        plot.title.text_color = scheme["ink"]
        for axis in plot.axis:
            axis.major_label_text_color = scheme["ink"]
            axis.axis_line_color = axis.major_tick_line_color = scheme["grid"]
        for grid in plot.grid:
            grid.grid_line_color = scheme["grid"]
        for legend in plot.legend:
            legend.label_text_color = scheme["ink"]


def _figure(title: str, **axes: Any) -> Any:
    plot = figure(
        title=title,
        height=HEIGHT,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        y_range=DataRange1d(start=0, range_padding=0.1),
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **axes,
    )
    plot.title.text_font_style = "normal"
    plot.title.text_font_size = "13px"
    plot.axis.minor_tick_line_color = None
    plot.axis.major_label_text_font_size = "11px"
    plot.xgrid.visible = False
    plot.add_layout(
        Legend(
            orientation="horizontal",
            label_text_font_size="11px",
            background_fill_alpha=0.0,
            border_line_color=None,
            padding=0,
            margin=0,
            spacing=12,
            glyph_width=14,
            glyph_height=10,
        ),
        "above",
    )
    return plot


def _precision(read: Callable[[PrecisionCounts], float | None]) -> Reading:
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


def _behind(quantile: int, numeric_order: bool) -> Reading:
    scale = 1.0 if numeric_order else 1e-3
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


def _number(value: float | None) -> float:
    return math.nan if value is None else value
