"""One visitor's page: what it shows, and how it is brought up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bokeh.core.templates import get_env
from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import Column, CustomJS, Div, InlineStyleSheet, TextInput, UIElement

from slackwater.watching import page_html as words
from slackwater.watching.page_charts import Chart, charted_sources, charts_of, paint
from slackwater.watching.series import Series

TICK_MS = 1000
_Parts = tuple[str, str, tuple[str, ...], tuple[str, ...]]
_HERE = Path(__file__).parent
_TEMPLATE = (_HERE / "page.html.jinja").read_text(encoding="utf-8")
_SHADOW_CSS = (_HERE / "page_parts.css").read_text(encoding="utf-8")
_TELL_SCHEME = """
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const tell = () => { scheme.value = dark.matches ? 'dark' : 'light'; };
dark.addEventListener('change', tell);
tell();
"""


class Page:
    """Shows all promises as cards, and one query whole: the one in the address, else the first that is heard of.

    A tick costs what has changed: new points of one query, and the words that differ. Built for 50 queries of 1 000
    micro-batches.
    """

    def __init__(
        self,
        document: Document,
        look: Callable[[], Sequence[Series]],
        places: Callable[[], list[str]],
        chosen: str | None,
        now_ms: Callable[[], float] = lambda: time.time() * 1e3,
    ) -> None:
        self._look, self._places, self._now_ms = look, places, now_ms
        self._chosen = chosen
        self._sheet = InlineStyleSheet(css=_SHADOW_CSS)
        self._overview = self._div("overview")
        self._detail = Column(name="detail", sizing_mode="stretch_width", children=[])
        self._foot = self._div("foot")
        self._shown: list[_Parts] = []
        self._parts: dict[tuple[str, str, str], Div] = {}
        self._charts: dict[tuple[str, str], list[Chart]] = {}
        self._scheme = TextInput(name="scheme", value="light", visible=False)
        self._scheme.on_change("value", lambda attr, old, new: self._paint())
        document.title = "Slackwater"
        document.template = get_env().from_string(_TEMPLATE)
        for root in (self._overview, self._detail, self._foot, self._scheme):
            document.add_root(root)
        document.js_on_event(DocumentReady, CustomJS(args={"scheme": self._scheme}, code=_TELL_SCHEME))
        self.update()
        document.add_periodic_callback(self.update, TICK_MS)

    def update(self) -> None:
        """Bring the page up to date."""
        now_ms, everything = self._now_ms(), self._look()
        known = {series.about.query_id for series in everything}
        if self._chosen not in known and everything:
            self._chosen = everything[0].about.query_id
        _say(self._overview, words.overview(everything, self._chosen, now_ms))
        _say(self._foot, words.footer(now_ms))
        chosen = [series for series in everything if series.about.query_id == self._chosen]
        wanted = [_parts_of(series) for series in chosen]
        if wanted != self._shown or not self._detail.children:
            self._build(chosen, wanted)
        for series in chosen:
            self._bring_up(series, now_ms)

    def _build(self, chosen: list[Series], wanted: list[_Parts]) -> None:
        self._shown, self._parts, self._charts = wanted, {}, {}
        if not chosen:
            empty = self._div("empty")
            empty.text = words.empty(self._places())
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

    def _bring_up(self, series: Series, now_ms: float) -> None:
        key = (series.about.query_id, series.about.promise)
        for chart in self._charts[key]:
            chart.update(series)
        said: dict[str, Callable[[], str]] = {
            "headline": lambda: words.headline(series, now_ms),
            "decisions": lambda: words.decisions(series),
            "windows": lambda: words.windows(series),
            "results": lambda: words.results(series),
            "sources": lambda: words.sources(series),
        }
        for part, say in said.items():
            if (*key, part) in self._parts:
                _say(self._parts[(*key, part)], say())

    def _paint(self) -> None:
        for charts in self._charts.values():
            paint(charts, dark=self._scheme.value == "dark")

    def _div(self, name: str) -> Div:
        return Div(name=name, sizing_mode="stretch_width", margin=0, stylesheets=[self._sheet], disable_math=True)


def _parts_of(series: Series) -> _Parts:
    """What makes the page as it is: when it changes, the page is built anew."""
    return series.about.query_id, series.about.promise, tuple(_tables(series)), charted_sources(series)


def _tables(series: Series) -> list[str]:
    there = {
        "decisions": True,
        "windows": series.about.kind == "completeness",
        "results": bool(series.shown.rows),
        "sources": bool(series.sources),
    }
    return [part for part, wanted in there.items() if wanted]


def _grid(children: Sequence[UIElement]) -> Column:
    styles = {
        "display": "grid",
        "grid-template-columns": "repeat(auto-fit, minmax(min(100%, 420px), 1fr))",
        "gap": "12px 24px",
    }
    return Column(children=list(children), sizing_mode="stretch_width", styles=styles)


def _say(part: Div, text: str) -> None:
    if part.text != text:
        part.text = text
