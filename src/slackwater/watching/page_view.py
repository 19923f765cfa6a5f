"""The live page of one visitor: its layout and its updates. This module needs bokeh."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bokeh.core.templates import get_env
from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import Column, CustomJS, Div, InlineStyleSheet, TextInput, UIElement

from slackwater.watching import page_html
from slackwater.watching.page_charts import Chart, charted_sources, charts_of, paint
from slackwater.watching.series import Series

TICK_MS = 1000
_Layout = tuple[str, str, tuple[str, ...], tuple[str, ...]]
_HERE = Path(__file__).parent
_TEMPLATE = (_HERE / "page.html.jinja").read_text(encoding="utf-8")
_SHADOW_CSS = (_HERE / "page_parts.css").read_text(encoding="utf-8")
_SEND_COLOUR_SCHEME = """
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const send = () => { scheme.value = dark.matches ? 'dark' : 'light'; };
dark.addEventListener('change', send);
send();
"""


class Page:
    """Shows a card for every promise, and the details of one query: the one in the address, else the first found.

    ``find`` returns the series; ``folders`` the folders to name when there are none. An update sends only what has
    changed: new points of the chosen query, and changed texts. Designed for 50 queries of 1 000 micro-batches.
    """

    def __init__(
        self,
        document: Document,
        find: Callable[[], Sequence[Series]],
        folders: Callable[[], list[str]],
        chosen: str | None,
        now_ms: Callable[[], float] = lambda: time.time() * 1e3,
    ) -> None:
        self._find, self._folders, self._now_ms = find, folders, now_ms
        self._chosen = chosen
        self._sheet = InlineStyleSheet(css=_SHADOW_CSS)
        self._overview = self._div("overview")
        self._detail = Column(name="detail", sizing_mode="stretch_width", children=[])
        self._foot = self._div("foot")
        self._layouts: list[_Layout] = []
        self._parts: dict[tuple[str, str, str], Div] = {}
        self._charts: dict[tuple[str, str], list[Chart]] = {}
        self._scheme = TextInput(name="scheme", value="light", visible=False)
        self._scheme.on_change("value", lambda attr, old, new: self._paint())
        document.title = "Slackwater"
        document.template = get_env().from_string(_TEMPLATE)
        for root in (self._overview, self._detail, self._foot, self._scheme):
            document.add_root(root)
        document.js_on_event(DocumentReady, CustomJS(args={"scheme": self._scheme}, code=_SEND_COLOUR_SCHEME))
        self.update()
        document.add_periodic_callback(self.update, TICK_MS)

    def update(self) -> None:
        """Show the current series."""
        now_ms, everything = self._now_ms(), self._find()
        known = {series.about.query_id for series in everything}
        if self._chosen not in known and everything:
            self._chosen = everything[0].about.query_id
        _set_text(self._overview, page_html.overview(everything, self._chosen, now_ms))
        _set_text(self._foot, page_html.footer(now_ms))
        chosen = [series for series in everything if series.about.query_id == self._chosen]
        layouts = [_layout_of(series) for series in chosen]
        if layouts != self._layouts or not self._detail.children:
            self._build(chosen, layouts)
        for series in chosen:
            self._update_details(series, now_ms)

    def _build(self, chosen: list[Series], layouts: list[_Layout]) -> None:
        self._layouts, self._parts, self._charts = layouts, {}, {}
        if not chosen:
            empty = self._div("empty")
            empty.text = page_html.empty(self._folders())
            self._detail.children = [empty]
            return
        sections: list[UIElement] = []
        for series in chosen:
            key = (series.about.query_id, series.about.promise)
            charts = self._charts[key] = charts_of(series)
            for chart in charts:
                chart.update(series)
            tables = _tables(series)
            for part in ("headline", *tables):
                self._parts[(*key, part)] = self._div(part)
            sections.append(self._parts[(*key, "headline")])
            sections.append(_grid([chart.figure for chart in charts]))
            sections.append(_grid([self._parts[(*key, part)] for part in tables]))
        self._paint()
        self._detail.children = sections

    def _update_details(self, series: Series, now_ms: float) -> None:
        key = (series.about.query_id, series.about.promise)
        for chart in self._charts[key]:
            chart.update(series)
        renderers: dict[str, Callable[[], str]] = {
            "headline": lambda: page_html.headline(series, now_ms),
            "decisions": lambda: page_html.decisions(series),
            "windows": lambda: page_html.windows(series),
            "results": lambda: page_html.results(series),
            "sources": lambda: page_html.sources(series),
        }
        for part, render in renderers.items():
            if (*key, part) in self._parts:
                _set_text(self._parts[(*key, part)], render())

    def _paint(self) -> None:
        for charts in self._charts.values():
            paint(charts, dark=self._scheme.value == "dark")

    def _div(self, name: str) -> Div:
        return Div(name=name, sizing_mode="stretch_width", margin=0, stylesheets=[self._sheet], disable_math=True)


def _layout_of(series: Series) -> _Layout:
    """What determines the elements of the page: when it changes, the page is rebuilt."""
    return series.about.query_id, series.about.promise, tuple(_tables(series)), charted_sources(series)


def _tables(series: Series) -> list[str]:
    visible = {
        "decisions": True,
        "windows": series.about.kind == "completeness",
        "results": bool(series.latest_results.rows),
        "sources": bool(series.sources),
    }
    return [part for part, show in visible.items() if show]


def _grid(children: Sequence[UIElement]) -> Column:
    styles = {
        "display": "grid",
        "grid-template-columns": "repeat(auto-fit, minmax(min(100%, 420px), 1fr))",
        "gap": "12px 24px",
    }
    return Column(children=list(children), sizing_mode="stretch_width", styles=styles)


def _set_text(part: Div, text: str) -> None:
    """Set the text if it differs: an assignment is sent to the browser."""
    if part.text != text:
        part.text = text
