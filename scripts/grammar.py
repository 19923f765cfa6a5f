"""Draws the window clause as a railroad diagram.

``python scripts/grammar.py`` writes docs/images/grammar.svg.
"""

from __future__ import annotations

from pathlib import Path

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "grammar.svg"
CLAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("RANGE", ("extent",)),
    ("SLIDE", ("extent",)),
    ("LANDMARK", ("'timestamp' or number",)),
    ("SESSION", ("duration",)),
    ("WATTR", ("column",)),
    ("PER", ("column, …",)),
    ("DRATIO", ("number", "%")),
    ("SLACK", ("extent",)),
    ("DELAY", ("duration",)),
    ("AFTER", ("WHERE",)),
    ("SHED", ("BY", "column or (expression)")),
    ("ARRIVAL", ("column",)),
    ("SOURCE", ("column, …",)),
    ("HEARTBEAT", ("column",)),
    ("LATE", ("COUNT, PANES or ROWS",)),
)
_STEP, _TOP, _LEFT, _RIGHT, _CHAR = 34, 44, 150, 520, 8.2


def box(x: float, y: float, text: str, *, word: bool) -> tuple[str, float]:
    """Return a box as SVG, and the x position of its right edge. Keywords have rounder corners than values."""
    width = _CHAR * len(text) + 18
    style, radius = ("word", 12) if word else ("value", 3)
    shape = f'<rect x="{x}" y="{y - 12}" width="{width}" height="24" rx="{radius}" class="{style}"/>'
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return shape + f'<text x="{x + width / 2}" y="{y + 4}">{escaped}</text>', x + width


def drawing() -> str:
    """Return the whole diagram as SVG."""
    bottom = _TOP + _STEP * (len(CLAUSES) - 1)
    parts = [f'<path d="M10 {_TOP} H30 M{_RIGHT} {_TOP} H{_RIGHT + 100}"/>']
    stream, end = box(30, _TOP, "stream [", word=True)
    close, last = box(_RIGHT + 30, _TOP, "]", word=True)
    parts += [stream, f'<path d="M{end} {_TOP} H{_LEFT} M{last} {_TOP} H{_RIGHT + 100}"/>', close]
    parts.append(f'<path d="M{_LEFT - 14} {_TOP} V{bottom} M{_RIGHT} {_TOP} V{bottom}"/>')
    for number, (word, values) in enumerate(CLAUSES):
        y, x = _TOP + _STEP * number, float(_LEFT + 6)
        parts.append(f'<path d="M{_LEFT - 14} {y} H{_RIGHT}"/>')
        drawn, x = box(x, y, word, word=True)
        parts.append(drawn)
        for value in values:
            drawn, x = box(x + 14, y, value, word=value in ("%", "BY"))
            parts.append(drawn)
    # The way back: clauses may come in any order, with or without commas.
    parts.append(f'<path d="M{_RIGHT} {_TOP} V14 H{_LEFT - 14} V{_TOP}"/>')
    parts.append(f'<rect x="{(_LEFT + _RIGHT) / 2 - 16}" y="3" width="32" height="22" rx="11" class="word"/>')
    parts.append(f'<text x="{(_LEFT + _RIGHT) / 2}" y="18">,</text>')
    style = (
        "path{fill:none;stroke:#8a94a6;stroke-width:1.5}rect{stroke:#8a94a6}.word{fill:#dbeafe}.value{fill:#f1f5f9}"
        "text{font:13px monospace;text-anchor:middle;fill:#1f2933}"
    )
    size = f'viewBox="0 0 {_RIGHT + 110} {bottom + 26}" width="{_RIGHT + 110}" height="{bottom + 26}"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n{body}\n</svg>\n'


if __name__ == "__main__":
    OUT.write_text(drawing(), encoding="utf-8")
