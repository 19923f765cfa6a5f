"""Draws the pictures of docs/explanation/heartbeat.md: ``make plots`` writes docs/images/heartbeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from plots import _STYLE, OUT, PROMISE, RATE_PER_S, Floats, Panel

from slackwater.control.disorder import DisorderController, make_method
from slackwater.sim.driver import run, waits_under
from slackwater.sim.streams.step import step
from slackwater.sim.trace import Trace
from slackwater.spark.command.recording import recorded_readings
from slackwater.units import percent

_BOX = """
.box { fill: none; stroke: #2f74b5; stroke-width: 1.4 } .ours { stroke: #c96a04 }
.arrow { stroke: #8a94a6; stroke-width: 1.4; fill: none; marker-end: url(#tip) } .tip { fill: #8a94a6 }
text.name { font-size: 12px; fill: #2f74b5; text-anchor: middle } text.ours { fill: #c96a04; stroke: none }
text.small { text-anchor: middle }
@media (prefers-color-scheme: dark) {
  .box { stroke: #6fb1ef } .ours { stroke: #f0a04b } text.name { fill: #6fb1ef } text.ours { fill: #f0a04b }
}
"""


def _judged(trace: Trace) -> tuple[Floats, Floats, Floats, Floats]:
    """Arrival and event time of the rows in seconds, the heartbeat that judged each, and the waits."""
    outcome = run(trace, DisorderController(PROMISE, make_method("budgeted-quantile", PROMISE)))
    assert trace.arrivals is not None
    starts = np.concatenate(([0], outcome.ends[:-1]))
    heartbeats = np.repeat(outcome.heartbeats, outcome.ends - starts)
    waits = waits_under(trace, heartbeats) / 1e3
    zero = trace.arrivals[0]
    return (trace.arrivals - zero) / 1e3, (trace.values - zero) / 1e3, (heartbeats - zero) / 1e3, waits


def rows_plot(seconds: float = 12.0, after_s: float = 8.0) -> str:
    """Rows by arrival and event time around a heartbeat."""
    trace = step(0, 18_000, rate_per_s=RATE_PER_S, mean_ms=400.0, factor=4.0, regimes=3)
    arrivals, times, heartbeats, _ = _judged(trace)
    shown = (arrivals >= after_s) & (arrivals < after_s + seconds)
    arrivals, times, heartbeats = arrivals[shown] - after_s, times[shown] - after_s, heartbeats[shown] - after_s
    late = (times < heartbeats) & (times >= 0)
    panel = Panel("event time (up) by arrival (right)", seconds, seconds)
    few = slice(None, None, 8)
    panel.dots("dots", "a row in 8", arrivals[few], np.maximum(times[few], 0))
    panel.line("red", "arrival clock", arrivals[few], arrivals[few])
    panel.line("blue", "heartbeat", arrivals[few], np.where(heartbeats[few] >= 0, heartbeats[few], np.nan))
    panel.dots("late", "every late row", arrivals[late], times[late])
    return panel.svg()


def wait_plot() -> str:
    """The wait for the recording of the tutorial, beside the constant that hindsight would have chosen."""
    rows = recorded_readings(120_000, 100, wrong_clocks=0, seed=0)
    values, arrived = (rows.column(name).cast(pa.int64()).to_numpy() / 1e3 for name in ("ts", "arrived"))
    arrivals, times, heartbeats, waits = _judged(Trace("readings", values, arrived))
    lateness, finite = arrivals - times, np.isfinite(waits)
    constant = float(np.quantile(lateness, 1 - PROMISE.drop_ratio))
    late = percent(int((times < heartbeats).sum()) / len(times))
    title = f"the tutorial's recording: {late} late, 1% promised; waits {waits[finite].mean():.0f} s on average"
    panel = Panel(title, float(arrivals[-1]), 75.0)
    few, fewer = slice(None, None, 100), slice(None, None, 300)
    panel.dots("dots", "lateness of a row in 300", arrivals[fewer], lateness[fewer])
    panel.line("blue", "wait", arrivals[few], np.where(finite, waits, np.nan)[few])
    name = f"the constant of hindsight, {constant:.0f} s"
    panel.line("orange", name, np.array([0.0, arrivals[-1]]), np.full(2, constant))
    return panel.svg()


def loop_plot() -> str:
    """How the heartbeat gets into Spark's plan and how its effect comes back."""
    boxes = [
        (20, 60, 130, "your stream", "events", False),
        (200, 60, 150, "count by distance", "from the heartbeat", False),
        (400, 60, 90, "union", "", False),
        (540, 60, 160, "your query", "windows, joins, …", False),
        (400, 170, 160, "heartbeat source", "one row: the watermark", True),
        (110, 170, 190, "controller", "wait for a drop ratio of 1%", True),
    ]
    arrows = ["M150 85H196", "M350 85H396", "M490 85H536", "M445 170V114", "M240 110V166", "M300 195H396"]
    parts = [f'<path class="arrow" d="{path}"/>' for path in arrows]
    for x, y, width, name, note, ours in boxes:
        kind = "box ours" if ours else "box"
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="50" rx="6"/>')
        middle = x + width / 2
        parts.append(
            f'<text class="name{" ours" if ours else ""}" x="{middle}" y="{y + (22 if note else 30)}">{name}</text>'
        )
        parts.append(f'<text class="small" x="{middle}" y="{y + 38}">{note}</text>')
    parts += [
        '<text x="20" y="30" class="title">Spark: rows stay in the JVM</text>',
        '<text x="20" y="250">Orange: Slackwater, on the driver. It sees counts and gives back one time.</text>',
        '<text x="262" y="142">counts, once per micro-batch</text>',
        '<text x="455" y="142">heartbeat</text>',
    ]
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z" style="fill:#8a94a6"/></marker></defs>'
    )
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 264" role="img">'
    return f"{head}<style>{_STYLE}{_BOX}</style>{tip}\n" + "\n".join(parts) + "\n</svg>\n"


def pictures() -> dict[Path, str]:
    """All pictures by their paths."""
    folder = OUT / "heartbeat"
    return {folder / "rows.svg": rows_plot(), folder / "wait.svg": wait_plot(), folder / "loop.svg": loop_plot()}


def main() -> None:
    """Write all pictures."""
    for path, svg in pictures().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
        print(path.relative_to(OUT.parents[1]), f"{len(svg):,} bytes")


if __name__ == "__main__":
    main()
