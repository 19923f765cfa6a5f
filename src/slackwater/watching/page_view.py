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
from slackwater.watching.page_charts import Chart, paint
from slackwater.watching.page_sections import Table, layout_of, sections_of
from slackwater.watching.series import Series

TICK_MS = 1000
_Key = tuple[str, str]
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
        self._layouts: list[tuple[object, ...]] = []
        self._headlines: dict[_Key, Div] = {}
        self._tables: dict[_Key, list[tuple[Table, Div]]] = {}
        self._charts: dict[_Key, list[Chart]] = {}
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
        layouts = [layout_of(series) for series in chosen]
        if layouts != self._layouts or not self._detail.children:
            self._build(chosen, layouts)
        for series in chosen:
            self._update_details(series, now_ms)

    def _build(self, chosen: list[Series], layouts: list[tuple[object, ...]]) -> None:
        self._layouts, self._headlines, self._tables, self._charts = layouts, {}, {}, {}
        if not chosen:
            empty = self._div("empty")
            empty.text = page_html.empty(self._folders())
            self._detail.children = [empty]
            return
        elements: list[UIElement] = []
        for series in chosen:
            key = (series.about.query_id, series.about.promise)
            self._charts[key], self._tables[key] = [], []
            self._headlines[key] = self._div("headline")
            elements.append(self._headlines[key])
            for section in sections_of(series):
                heading = self._div("question")
                heading.text = page_html.section(section.question)
                tables = [(table, self._div(name)) for name, table in section.tables.items()]
                for _, div in tables:
                    if div.name in section.wide:
                        div.styles = {"grid-column": "1 / -1"}
                for chart in section.charts:
                    chart.update(series)
                self._charts[key] += section.charts
                self._tables[key] += tables
                elements += [heading, _grid([*(chart.figure for chart in section.charts), *(div for _, div in tables)])]
        self._paint()
        self._detail.children = elements

    def _update_details(self, series: Series, now_ms: float) -> None:
        key = (series.about.query_id, series.about.promise)
        for chart in self._charts[key]:
            chart.update(series)
        _set_text(self._headlines[key], page_html.headline(series, now_ms))
        for table, div in self._tables[key]:
            _set_text(div, table(series))

    def _paint(self) -> None:
        for charts in self._charts.values():
            paint(charts, dark=self._scheme.value == "dark")

    def _div(self, name: str) -> Div:
        return Div(name=name, sizing_mode="stretch_width", margin=0, stylesheets=[self._sheet], disable_math=True)


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
