"""How far the heartbeat must pass the newest row so that every kind of window is closed."""

from __future__ import annotations

import pytest

from slackwater.language import parse
from slackwater.plan import Catalog, make_plan
from slackwater.spark.completeness.open_windows import WindowGrid

CATALOG = Catalog.from_sql("CREATE TABLE S (ts TIMESTAMP, id BIGINT, k STRING, v DOUBLE)")
SECOND, YEARS = 1_000.0, WindowGrid().length_ms


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("SELECT COUNT(*) FROM S [RANGE 10 seconds SLIDE 10 seconds]", WindowGrid(10 * SECOND, 10 * SECOND)),
        ("SELECT COUNT(*) FROM S [RANGE 10 seconds SLIDE 2 seconds]", WindowGrid(10 * SECOND, 2 * SECOND)),
        ("SELECT COUNT(*) FROM S [RANGE 100 SLIDE 50 WATTR id]", WindowGrid(100.0)),
        ("SELECT k, AVG(v) FROM S [RANGE 10 seconds] GROUP BY k", WindowGrid(0.0)),
        ("SELECT AVG(v) FROM S [RANGE 10 tuples]", WindowGrid(0.0)),
        (
            "SELECT k, AVG(v) FROM S [LANDMARK '2026-01-01' SLIDE 5 seconds] GROUP BY k",
            WindowGrid(5 * SECOND),
        ),
        ("SELECT k, v FROM S [DRATIO 1%]", WindowGrid()),
        (
            "SELECT window_end, MAX(n) FROM (SELECT k, window_end, COUNT(*) AS n "
            "FROM S [RANGE 10 seconds SLIDE 10 seconds] GROUP BY k) AS q GROUP BY window_end",
            WindowGrid(10 * SECOND, 10 * SECOND, YEARS),
        ),
    ],
)
def test_the_grid_of_each_kind_of_window(text: str, grid: WindowGrid) -> None:
    plan = make_plan(parse(text), CATALOG)
    assert WindowGrid.of(plan) == grid
    assert grid.end_of_stream_ms(0.0) > grid.length_ms + grid.more_ms
