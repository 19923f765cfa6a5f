"""Draws a plot for every method and every law: ``make plots`` writes docs/images/methods and docs/images/laws.

All methods get the same generated stream, whose lateness is five times longer in the middle third. All laws get the
same overload, twice the capacity in the middle third. So the plots can be compared. Takes half a minute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder import DisorderController, make_method, method_names
from slackwater.control.shedding import law_names
from slackwater.promises import Completeness
from slackwater.sim.driver import run as run_method
from slackwater.sim.driver import waits_under
from slackwater.sim.shedding.costs import constant_cost
from slackwater.sim.shedding.inputs import rows_from_rates
from slackwater.sim.shedding.microbatch import run_micro_batches
from slackwater.sim.shedding.run import Setup
from slackwater.sim.shedding.run import run as run_law
from slackwater.sim.streams.step import step
from slackwater.sim.trace import Trace
from slackwater.units import percent

Floats = NDArray[np.float64]
OUT = Path(__file__).resolve().parents[1] / "docs" / "images"
PROMISE = Completeness(0.01)
ROWS, RATE_PER_S = 18_000, 300.0
CAPACITY_PER_S, TARGET_S, SECONDS, FIXED_S = 190.0, 2.0, 90, 0.2
_WIDE, _HIGH, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 230, 44, 40, 14, 30
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #52606d } .title { font-size: 13px }
.axis, .grid { stroke: #c3ccd6; stroke-width: 1; fill: none } .grid { stroke-opacity: .5 }
path { fill: none } .blue { stroke: #2f74b5; stroke-width: 1.6 } .orange { stroke: #c96a04; stroke-width: 1.6 }
.red { stroke: #cf3f3f; stroke-width: 1.2; stroke-dasharray: 5 4 }
.dots { stroke: #8a94a6; stroke-width: 2; stroke-linecap: round }
.late { stroke: #cf3f3f; stroke-width: 3.4; stroke-linecap: round }
text.blue { fill: #2f74b5; stroke: none } text.orange { fill: #c96a04; stroke: none }
text.red, text.late { fill: #cf3f3f; stroke: none } text.dots { fill: #6b7686; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #a9b4c4 } .axis, .grid { stroke: #4a5568 } text.dots { fill: #a9b4c4 }
  .blue { stroke: #6fb1ef } text.blue { fill: #6fb1ef } .orange { stroke: #f0a04b } text.orange { fill: #f0a04b }
  .red, .late { stroke: #ff8a80 } text.red, text.late { fill: #ff8a80 }
}
"""


class Panel:
    """An SVG plot; both axes are in seconds and start at zero. Values above ``top`` are drawn at ``top``."""

    def __init__(self, title: str, seconds: float, top: float) -> None:
        self._seconds, self._top = seconds, top
        self._parts: list[str] = []
        self._legend_x = float(_LEFT)
        self._text(_LEFT, 15, title, "title")
        for at in _ticks(top):
            x, y = self._at(0.0, at)
            self._parts.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDE - _RIGHT}"/>')
            self._text(_LEFT - 6, float(y) + 4, f"{at:g} s", "", "end")
        for at in _ticks(seconds):
            x, _ = self._at(at, 0.0)
            self._text(float(x), _HIGH - _BOTTOM + 16, f"{at:g} s", "", "middle")
        self._parts.append(f'<path class="axis" d="M{_LEFT} {_HIGH - _BOTTOM}H{_WIDE - _RIGHT}"/>')

    def line(self, kind: str, name: str, x: Floats, y: Floats) -> None:
        """Add a line, with gaps where ``y`` is not finite."""
        command, path = "M", []
        for seconds, value in zip(x, y, strict=True):
            if not np.isfinite(value):
                command = "M"
                continue
            path.append(command + " ".join(self._at(float(seconds), float(value))))
            command = "L"
        self._parts.append(f'<path class="{kind}" d="{"".join(path)}"/>')
        self._add_to_legend(kind, name)

    def dots(self, kind: str, name: str, x: Floats, y: Floats) -> None:
        """Add points, as one SVG path."""
        points = (self._at(float(a), float(b)) for a, b in zip(x, y, strict=True))
        self._parts.append(f'<path class="{kind}" d="{"".join(f"M{a} {b}h0" for a, b in points)}"/>')
        self._add_to_legend(kind, name)

    def svg(self) -> str:
        """The SVG document."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" role="img">'
        return f"{head}<style>{_STYLE}</style>\n" + "\n".join(self._parts) + "\n</svg>\n"

    def _at(self, seconds: float, value: float) -> tuple[str, str]:
        x = _LEFT + (_WIDE - _LEFT - _RIGHT) * seconds / self._seconds
        y = _HIGH - _BOTTOM - (_HIGH - _BOTTOM - _TOP) * min(max(value, 0.0), self._top) / self._top
        return f"{x:.1f}", f"{y:.1f}"

    def _add_to_legend(self, kind: str, name: str) -> None:
        self._text(self._legend_x, 31, name, kind)
        self._legend_x += 6.2 * len(name) + 16

    def _text(self, x: float, y: float, text: str, kind: str, anchor: str = "start") -> None:
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{text}</text>')


def _ticks(top: float) -> Sequence[float]:
    size = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if top / step <= 6)
    return [size * number for number in range(1, int(top / size) + 1)]


def method_stream() -> Trace:
    """Lateness is five times longer in the middle third; one row in 50 carries a punctuation 0.6 s below itself."""
    trace = step(0, ROWS, rate_per_s=RATE_PER_S, mean_ms=150.0, factor=5.0, regimes=3)
    punctuations = np.where(np.arange(trace.rows) % 50 == 0, trace.values - 600.0, np.nan)
    return dataclasses.replace(trace, punctuations=punctuations)


def method_plot(name: str, trace: Trace) -> str:
    """Plot the lateness of rows, the wait of the method, and its late rows."""
    outcome = run_method(trace, DisorderController(PROMISE, make_method(name, PROMISE)))
    assert trace.arrivals is not None
    starts = np.concatenate(([0], outcome.ends[:-1]))
    heartbeats = np.repeat(outcome.heartbeats, outcome.ends - starts)
    seconds, lateness_s = (trace.arrivals - trace.arrivals[0]) / 1e3, (trace.arrivals - trace.values) / 1e3
    waits_s = np.where(np.isfinite(heartbeats), waits_under(trace, heartbeats) / 1e3, np.nan)
    late = trace.values < heartbeats
    word = "kept" if PROMISE.kept_by(outcome.late, outcome.rows - outcome.late) else "broken"
    title = (
        f"{name}: {percent(outcome.drop_ratio)} late, {percent(PROMISE.drop_ratio)} promised ({word}); "
        f"mean wait {outcome.mean_wait / 1e3:.2f} s"
    )
    panel = Panel(title, float(seconds[-1]), 5.0)
    some, few = slice(None, None, trace.rows // 500), slice(None, None, trace.rows // 360)
    panel.dots("dots", "lateness of a row in 36", seconds[some], lateness_s[some])
    panel.line("blue", "wait", seconds[few], waits_s[few])
    missed = np.flatnonzero(late)
    missed = missed[:: -(-len(missed) // 400) or 1]
    panel.dots("late", "late rows", seconds[missed], lateness_s[missed])
    return panel.svg()


def law_plot(name: str) -> str:
    """Plot the mean delay per second under the law, with a queue and with micro-batches as plant."""
    rates = np.full(SECONDS, 0.6 * CAPACITY_PER_S)
    rates[SECONDS // 3 : 2 * SECONDS // 3] = 2.0 * CAPACITY_PER_S
    arrivals_s = rows_from_rates(rates, np.random.default_rng(0))
    cost_s, headroom = 0.97 / CAPACITY_PER_S, 0.97
    setup = Setup(arrivals_s, constant_cost(1, cost_s), float(SECONDS), ((0.0, TARGET_S),), headroom=headroom)
    queue = run_law(name, setup)
    batches = run_micro_batches(
        name, arrivals_s, target_s=TARGET_S, trigger_s=1.0, fixed_s=FIXED_S, cost_s=cost_s / headroom
    )
    batched = batches.outcome(name, arrivals_s, TARGET_S, 1.0)
    title = f"{name}: {percent(queue.loss_ratio)} shed over a queue, {percent(batched.loss_ratio)} over micro-batches"
    panel = Panel(title, float(SECONDS), 8.0)
    at = np.arange(SECONDS) + 0.5
    panel.line("blue", "delay over a queue", at, queue.mean_delay_s()[:SECONDS])
    panel.line("orange", "over micro-batches", at[: len(batched.mean_delay_s())], batched.mean_delay_s()[:SECONDS])
    panel.line("red", "promised", np.array([0.0, SECONDS]), np.full(2, TARGET_S))
    return panel.svg()


def plots() -> Iterator[tuple[Path, str]]:
    """All plots: their paths and SVG texts."""
    trace = method_stream()
    for name in method_names():
        yield OUT / "methods" / f"{name}.svg", method_plot(name, trace)
    for name in law_names():
        yield OUT / "laws" / f"{name}.svg", law_plot(name)


def main() -> None:
    """Write all plots."""
    for path, svg in plots():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
        print(path.relative_to(OUT.parents[1]), f"{len(svg):,} bytes")


if __name__ == "__main__":
    main()
