"""The queries of ``equality.py``, each with the batch query that must give the same result."""

from __future__ import annotations

from dataclasses import dataclass

AGGREGATES = (
    "COUNT(*) AS a, SUM(value) AS b, MAX(value) AS c",
    "AVG(value) AS a, MIN(value) AS b, COUNT(value) AS c",
    "STDDEV(value) AS a, VAR_POP(value) AS b, COUNT(DISTINCT value) AS c",
    "SUM(value) FILTER (WHERE id % 2 = 0) AS a, COUNT_IF(value > 50) AS b, BOOL_OR(value > 90) AS c",
    "SORT_ARRAY(COLLECT_SET(value)) AS a, 1 + 2 * SUM(value) AS b, BIT_XOR(id) AS c",
    "PERCENTILE_APPROX(value, 0.5) AS a, PERCENTILE(value, 0.9) AS b, COUNT(*) AS c",
)
MERGEABLE = AGGREGATES[:-1]
ORDERED_AGGREGATES = ("MAX", "AVG", "SUM", "MIN", "STDDEV_POP", "COUNT")


@dataclass(frozen=True)
class Case:
    """A query over a stream, and the batch query over ``{rows}`` that must give the same result."""

    stream: str
    text: str
    exact: str
    wait_ms: float
    ordered: bool = False

    @property
    def by_number(self) -> bool:
        """Whether a number, not a time, orders the stream."""
        return "WATTR id" in self.text


SHAPES = (
    ("", "", ""),
    ("s.sensor, ", "WHERE value > 3", "GROUP BY s.sensor"),
    ("n.place, ", "JOIN names AS n ON n.sensor = s.sensor", "GROUP BY n.place"),
)


def sliding(stream: str, length_s: float, slide_s: float, shape: int, chosen: str, wait_s: float) -> Case:
    """A sliding window over time. Aggregates that cannot be merged have no late panes; their wait avoids late rows."""
    length, slide = (f"{round(1000 * seconds)} milliseconds" for seconds in (length_s, slide_s))
    rows = f"(SELECT *, window(ts, '{length}', '{slide}') AS w FROM {{rows}})"
    late = "LATE PANES" if chosen in MERGEABLE else "LATE COUNT"
    clause = f"RANGE {length} SLIDE {slide} ARRIVAL arrived {late}"
    return _native(stream, clause, rows, "w.start AS window_start, w.end AS window_end", shape, chosen, wait_s * 1000)


def numbered(stream: str, length: int, slide: int, shape: int, chosen: str, wait: float) -> Case:
    """A sliding window over order IDs."""
    first = f"id - id % {slide} - {(length - 1) // slide * slide}"
    explode = f"explode(filter(sequence({first}, id - id % {slide}, {slide}), e -> e > id - {length}))"
    rows = f"(SELECT *, {explode} AS w FROM {{rows}})"
    clause = f"RANGE {length} SLIDE {slide} WATTR id LATE PANES"
    return _native(stream, clause, rows, f"w AS window_start, w + {length} AS window_end", shape, chosen, wait)


def _native(stream: str, clause: str, rows: str, edges: str, shape: int, chosen: str, wait_ms: float) -> Case:
    key, tail, group = SHAPES[shape]
    text = f"SELECT {key}{chosen} FROM {stream} [{clause}] AS s {tail} {group}".strip()
    keyed = f"GROUP BY w{', ' + group.removeprefix('GROUP BY ') if group else ''}"
    return Case(stream, text, f"SELECT {edges}, {key}{chosen} FROM {rows} AS s {tail} {keyed}", wait_ms)


def per_row(stream: str, length_s: int, keyed: bool, names: tuple[str, str], wait_s: float) -> Case:
    """A window over time with one result per row."""
    key, group, part = _keyed(keyed)
    before_us = length_s * 1_000_000 - 1
    over = f"OVER ({part}ORDER BY unix_micros(ts) RANGE BETWEEN {before_us} PRECEDING AND CURRENT ROW)"
    first, second = names
    return Case(
        stream,
        f"SELECT {key}{first}(value) AS a, {second}(value) AS b, COUNT(*) AS n FROM {stream} "
        f"[RANGE {length_s} seconds ARRIVAL arrived LATE ROWS]{group}",
        f"SELECT ts - INTERVAL {length_s} SECONDS AS window_start, ts AS window_end, {key}"
        f"{first}(value) {over} AS a, {second}(value) {over} AS b, COUNT(*) {over} AS n FROM {{rows}}",
        wait_s * 1000,
        ordered=True,
    )


def tuples(stream: str, length: int, slide: int, keyed: bool, names: tuple[str, str], wait: float) -> Case:
    """A window over the last ``length`` rows, of the whole stream or per key."""
    key, group, part = _keyed(keyed)
    over = f"OVER ({part}ORDER BY id ROWS BETWEEN {length - 1} PRECEDING AND CURRENT ROW)"
    first, second = names
    per = " PER sensor" if keyed else ""
    return Case(
        stream,
        f"SELECT {key}{first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[RANGE {length} tuples SLIDE {slide} tuples WATTR id{per} LATE ROWS]{group}",
        f"SELECT window_start, window_end, {key}a, b FROM (SELECT MIN(id) {over} AS window_start, id AS window_end, "
        f"{key}{first}(value) {over} AS a, {second}(value) {over} AS b, ROW_NUMBER() OVER ({part}ORDER BY id) AS i "
        f"FROM {{rows}}) WHERE i % {slide} = 0",
        wait,
        ordered=True,
    )


def landmark(stream: str, since: str, slide_s: int, names: tuple[str, str], wait_s: float) -> Case:
    """A landmark window from a point in time, with a result for every step that has rows."""
    first, second = names
    rows = f"(SELECT * FROM {{rows}} WHERE ts >= timestamp'{since}')"
    ends = f"(SELECT DISTINCT sensor, window(ts, '{slide_s} seconds').end AS e FROM {rows})"
    return Case(
        stream,
        f"SELECT sensor, {first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[LANDMARK '{since}' SLIDE {slide_s} seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor",
        f"SELECT timestamp'{since}' AS window_start, e AS window_end, s.sensor, {first}(value) AS a, "
        f"{second}(value) AS b FROM {rows} AS s JOIN {ends} AS ends ON ends.sensor = s.sensor AND s.ts < e "
        "GROUP BY e, s.sensor",
        wait_s * 1000,
        ordered=True,
    )


def numbered_landmark(stream: str, since: int, slide: int, names: tuple[str, str], wait: float) -> Case:
    """A landmark window from an order ID, with a result for every step that has rows."""
    first, second = names
    rows = f"(SELECT * FROM {{rows}} WHERE id >= {since})"
    ends = f"(SELECT DISTINCT sensor, {since} + ((id - {since}) DIV {slide} + 1) * {slide} AS e FROM {rows})"
    return Case(
        stream,
        f"SELECT sensor, {first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[LANDMARK {since} SLIDE {slide} WATTR id LATE ROWS] GROUP BY sensor",
        f"SELECT {since}L AS window_start, e AS window_end, s.sensor, {first}(value) AS a, {second}(value) AS b "
        f"FROM {rows} AS s JOIN {ends} AS ends ON ends.sensor = s.sensor AND s.id < e GROUP BY e, s.sensor",
        wait,
        ordered=True,
    )


def _keyed(keyed: bool) -> tuple[str, str, str]:
    return ("sensor, ", " GROUP BY sensor", "PARTITION BY sensor ") if keyed else ("", "", "")
