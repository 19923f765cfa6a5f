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
from slackwater.watching.series import MAX_POINTS, Decision, Series

HEIGHT = 210
_ZERO = "zero"
LIGHT = {"ink": "#4a5568", "grid": "#e2e8f0"}
DARK = {"ink": "#a9b4c4", "grid": "#2d3748"}
BLUE, ORANGE, GREY, RED = "#3b82c4", "#d97706", "#8a94a6", "#d64545"
_MAX_MARKS = 12
_MARK_TEXT = {"angle": math.pi / 2, "text_font_size": "10px", "x_offset": -2, "y_offset": -2}
Reading = Callable[[Series, Point], float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; ``read`` takes its value from a series and one of its points."""

    name: str
    colour: str
    read: Reading
    dash: str = "solid"
    dots: bool = False  # for values that most micro-batches do not have


@dataclass
class TimeChart:
    """Lines over time. An update sends only new points to the browser.

    ``marked``: a dotted line with the new cause wherever the cause of the decisions changed.
    """

    title: str
    lines: list[Line]
    percent: bool = False
    marked: bool = False
    marks: ColumnDataSource = field(init=False)
    mark_glyphs: list[Any] = field(init=False, default_factory=list)
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
        self.marks = ColumnDataSource({"at": [], _ZERO: [], "cause": []})
        if self.marked:
            self.mark_glyphs = [
                plot.vspan(x="at", source=self.marks, line_dash="dotted", line_alpha=0.7).glyph,
                plot.text("at", _ZERO, "cause", source=self.marks, **_MARK_TEXT).glyph,
            ]
        for line in self.lines:
            if line.dots:
                dots = {"size": 5, "fill_color": line.colour, "line_color": None, "legend_label": line.name}
                plot.scatter("at", line.name, source=self.source, **dots)
                continue
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
        if self.marked:
            self._mark(series)

    def _mark(self, series: Series) -> None:
        """Mark the latest changes of cause that have room for their text."""
        span_ms = series.points[-1].at_ms - series.points[0].at_ms
        shown: list[Decision] = []
        for decision in reversed(list(series.decisions)[1:]):
            if len(shown) < _MAX_MARKS and (not shown or shown[-1].at_ms - decision.at_ms > span_ms / _MAX_MARKS):
                shown.append(decision)
        at = [decision.at_ms for decision in shown]
        if at != self.marks.data["at"]:
            causes = [decision.cause for decision in shown]
            self.marks.data = {"at": at, _ZERO: [0.0] * len(at), "cause": causes}


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
        if isinstance(chart, TimeChart):
            for glyph in chart.mark_glyphs:
                setattr(glyph, "text_color" if hasattr(glyph, "text_color") else "line_color", scheme["ink"])


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


def _number(value: float | None) -> float:
    return math.nan if value is None else value
