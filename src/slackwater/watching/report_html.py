"""A report as HTML for a notebook: verdict, ledger, small plots, latest decisions. This module needs matplotlib."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Sequence
from itertools import pairwise

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from slackwater.units import percent
from slackwater.watching.point import Point, bin_edges_ms
from slackwater.watching.precision import FATES, PrecisionCounts, deadline_texts
from slackwater.watching.series import Series
from slackwater.watching.verdict import (
    clock_text,
    decision_text,
    lateness_text,
    promise_text,
    quantiles_text,
    verdict,
)

# readable on light and dark backgrounds
_TONES = {"good": "#2a9d50", "bad": "#e0524a", "open": "#b3860b"}
_INK, _LINE = "#7f8ba0", "#3f8fd6"


def report_html(series: Sequence[Series]) -> str:
    """The report of a query's promises; about 30 kB per promise."""
    if not series:
        return "<p>No micro-batch has been reported yet.</p>"
    return "".join(_promise(one) for one in series)


def _promise(series: Series) -> str:
    state, ledger, about = verdict(series), series.ledger, series.about
    counts = [("on time", ledger.on_time), ("late", ledger.late), ("shed", ledger.shed), ("invalid", ledger.invalid)]
    texts: list[tuple[str, str]] = []
    if about.kind == "precision":
        precision = series.latest("precision") or PrecisionCounts()
        names = ("queries", "evaluated", "deferred", "guessed", "withheld")
        counts = [(name, getattr(precision, name)) for name in names]
        texts = deadline_texts(precision)
        counts += [(f"rows {fate.replace('_', ' ')}", getattr(precision, fate)) for fate in FATES]
    elif about.kind == "timeliness":
        counts = [("kept", ledger.on_time), ("shed", ledger.shed)]
    texts = [(name, f"{count:,}") for name, count in counts] + texts
    rows = "".join(f"<span style='margin-right:1.4em'><b>{text}</b> {name}</span>" for name, text in texts)
    decisions = "".join(
        f"<div><span style='opacity:.7;margin-right:1em'>{clock_text(d.at_ms)}</span>"
        f"{html.escape(decision_text(about, d))}</div>"
        for d in list(series.decisions)[-5:][::-1]
    )
    since = "" if state.since_ms is None else f"since {clock_text(state.since_ms)} UTC"
    facts = " · ".join(html.escape(f) for f in (state.realised, state.recently, state.margin, since) if f)
    title = html.escape(f"{about.query}: {about.promise}")
    # no tables: notebooks apply their own style to them
    return (
        f"<div style='margin:0 0 1.4em;line-height:1.5'><div><b>{title}</b> &nbsp; {html.escape(promise_text(about))}"
        f" by {html.escape(about.method)}</div>"
        f"<div><b style='font-size:1.4em;color:{_TONES[state.tone]}'>{state.word}</b> &nbsp;{facts}</div>"
        f"<div>{rows}</div>{_lateness_line(series)}{_why_not_exact(series)}{_plots(series)}"
        f"<div style='font-size:.9em'>{decisions}</div></div>"
    )


def _lateness_line(series: Series) -> str:
    if series.about.kind != "completeness" or series.recent_lateness_ms() is None:
        return ""
    run = quantiles_text(series.about, series.latest("run_lateness_ms"))
    text = f"lateness {lateness_text(series)} in the last 5 min; {run} over the run"
    return f"<div>{html.escape(text)}</div>"


def _why_not_exact(series: Series) -> str:
    return "".join(f"<div>The ledger is not exact: {html.escape(reason)}.</div>" for reason in series.ledger.why)


def _plots(series: Series) -> str:
    if len(series.points) < 2:
        return ""
    chosen = _PLOTS[series.about.kind]
    with rc_context({"svg.fonttype": "none", "font.size": 8, "svg.hashsalt": "slackwater"}):
        figure = Figure(figsize=(3.1 * len(chosen), 1.7), layout="constrained")
        figure.patch.set_alpha(0.0)
        for axes, plot in zip(figure.subplots(1, len(chosen), squeeze=False)[0], chosen, strict=True):
            plot(axes, series)
            axes.set_facecolor("none")
            axes.tick_params(colors=_INK, labelsize=7)
            for spine in axes.spines.values():
                spine.set_visible(False)
        svg = io.StringIO()
        figure.savefig(svg, format="svg")
    text = svg.getvalue()
    return text[text.index("<svg") :]


def _over_time(
    axes: Axes, series: Series, title: str, value: Callable[[Point], float | None], promised: float = 0.0
) -> None:
    end = series.points[-1].at_ms
    points = [((p.at_ms - end) / 6e4, v) for p in series.points if (v := value(p)) is not None]
    axes.set_title(title, fontsize=8, loc="left", color=_INK)
    axes.plot([x for x, _ in points], [y for _, y in points], color=_LINE, linewidth=1.2)
    axes.set_ylim(0, 1.1 * max([promised, *(y for _, y in points)], default=0.0) or 1.0)
    axes.set_xlabel("minutes", fontsize=7, color=_INK)
    axes.locator_params(nbins=5)
    if promised:
        axes.axhline(promised, color=_TONES["bad"], linewidth=0.8, linestyle="--")


def _drop_ratio(axes: Axes, series: Series) -> None:
    promised = series.about.promised
    title = f"drop ratio, % (promised {percent(promised)})"
    _over_time(axes, series, title, lambda p: 100 * p.ledger.drop_ratio, 100 * promised)


def _wait(axes: Axes, series: Series) -> None:
    unit, scale = ("", 1.0) if series.about.numeric_order else (", s", 1e-3)
    _over_time(axes, series, f"wait{unit}", lambda p: None if p.wait_ms is None else scale * p.wait_ms)


def _lateness(axes: Axes, series: Series) -> None:
    axes.set_title("behind the clock, s (dashed: wait)", fontsize=8, loc="left", color=_INK)
    bins = series.lateness_bins()
    edges = [bin_edges_ms(number) for number in bins]
    rows = sum(bins.values()) or 1
    axes.bar(
        [low / 1e3 for low, _ in edges],
        [100 * count / rows for count in bins.values()],
        width=[(high - low) / 1e3 for low, high in edges],
        align="edge",
        color=_LINE,
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()
    axes.set_ylabel("% of rows", fontsize=7, color=_INK)
    wait_ms = series.latest("wait_ms")
    if wait_ms is not None and wait_ms > 0:
        axes.axvline(wait_ms / 1e3, color=_TONES["bad"], linewidth=0.8, linestyle="--")


def _delay(axes: Axes, series: Series) -> None:
    _over_time(axes, series, "delay, s", lambda p: p.delay_s, series.about.promised)


def _shed(axes: Axes, series: Series) -> None:
    _over_time(axes, series, "shed, %", lambda p: None if p.shed_ratio is None else 100 * p.shed_ratio)


def _evaluated(axes: Axes, series: Series) -> None:
    counts = {
        b.batch: (b.precision.evaluated - a.precision.evaluated) / (b.batch - a.batch)
        for a, b in pairwise(series.points)
        if a.precision is not None and b.precision is not None
    }
    _over_time(axes, series, "evaluated per micro-batch", lambda p: counts.get(p.batch))


def _fidelity(axes: Axes, series: Series) -> None:
    def share(point: Point) -> float | None:
        counts = point.precision
        ratio = None if counts is None else counts.fidelity if counts.audited else counts.hit_ratio
        return None if ratio is None else 100 * ratio

    _over_time(axes, series, "time within the bound, %", share, 100 * series.about.promised)


_PLOTS: dict[str, tuple[Callable[[Axes, Series], None], ...]] = {
    "completeness": (_drop_ratio, _wait, _lateness),
    "timeliness": (_delay, _shed),
    "precision": (_fidelity, _evaluated),
}
