"""Segments: an aggregation between panes and windows, for windows that overlap many times.

Windows are put into blocks of ``m`` that end one SLIDE after another. Let E be the time one SLIDE before the first end
of a block. Rows between the start of the block's last window and E are in every window of the block: they are its
*core*. So a pane goes

* into the core of each block that contains it whole; a core is passed on to the windows of its block when E is reached;
* into single windows of blocks that contain it only in part: at the start of the block, where it also waits for E,
  because nothing happens to these windows before E; and at the end of the block, where it is passed on at once.

A pane in n windows then goes into about m + n/m segments: 2 √n with m = √n. A window has state of its own only from E
on, so about m windows are updated in each micro-batch, not n. The cost is one more aggregation.

A late pane goes only where its heartbeat has not passed: into cores with a later E, and into single windows that are
open. Times are microseconds. ``lifted`` is the event time of the pane (see ``native_panes``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.plan import Plan
from slackwater.units import MS_US


@dataclass(frozen=True, slots=True)
class Sliding:
    """Length, slide and pane of a sliding window, in microseconds."""

    length: int
    slide: int
    pane: int

    @classmethod
    def of(cls, plan: Plan) -> Sliding:
        """The window of a plan. Numbers are scaled like milliseconds, as their event times are."""
        assert plan.window.range is not None and plan.window.slide is not None
        length, slide = round(plan.window.range.amount * MS_US), round(plan.window.slide.amount * MS_US)
        return cls(length, slide, math.gcd(length, slide))

    @property
    def first_end(self) -> str:
        """Spark SQL: the end of the first window with the pane that ends at ``end``.

        Windows start at multiples of SLIDE.
        """
        return f"(end + pmod({self.length} - end, {self.slide}L))"

    @property
    def last_end(self) -> str:
        """Spark SQL: the end of the last window with the pane that ends at ``end``."""
        start = f"(end - {self.pane})"
        return f"({start} - pmod({start}, {self.slide}L) + {self.length})"


def segments_of(panes: DataFrame, sliding: Sliding, windows: int, keys: list[str], parts: list[str]) -> DataFrame:
    """One row for each segment of each pane, with its ``close_us``, ``first_end`` and ``last_end``.

    The last two are the ends of the first and the last window that the segment goes into.

    :param windows: the number of windows per block.
    :param keys: the columns of the group keys.
    :param parts: the columns of the partial aggregates.
    """
    slide, block = sliding.slide, windows * sliding.slide
    ahead = "greatest(end, lifted + 1)"  # the smallest E that is neither inside the pane nor passed
    latest = f"(end - {sliding.pane} + {sliding.length - block})"  # the largest E whose last window contains the pane
    placed = panes.selectExpr(
        "end",
        "unix_micros(close) AS lifted",
        f"{sliding.first_end} AS first_end",
        f"{sliding.last_end} AS last_end",
        *keys,
        *parts,
    ).selectExpr(
        "*",
        f"{ahead} + pmod({sliding.length} - {ahead}, {block}L) AS first_core",
        f"{latest} - pmod({latest} - {sliding.length}, {block}L) AS last_core",
    )
    has_core = "first_core <= last_core"
    # Segments as numbers: twice the end of a single window, or twice the E of a core plus one.
    at_block_end = _numbers("first_end", f"IF({has_core}, first_core, last_end)", slide)
    at_block_start = _numbers(f"last_core + {block + slide}", "last_end", slide)
    cores = _numbers("first_core", "last_core", block, odd=1)
    exploded = placed.selectExpr(
        "end",
        "lifted",
        f"explode(concat({at_block_end}, IF({has_core}, concat({at_block_start}, {cores}), array()))) AS number",
        *keys,
        *parts,
    ).selectExpr("end", "lifted", "number % 2 != 0 AS is_core", "shiftright(number, 1) AS at", *keys, *parts)
    block_start = f"(at - {slide} - pmod(at - {slide + sliding.length}, {block}L))"  # the E of a window's block
    return exploded.select(
        F.expr(
            f"CASE WHEN is_core THEN at - {MS_US} WHEN at <= lifted THEN lifted "
            f"WHEN {block_start} >= {ahead} THEN {block_start} - {MS_US} ELSE at - {MS_US} END"
        ).alias("close_us"),
        F.expr(f"IF(is_core, at + {slide}, at)").alias("first_end"),
        F.expr(f"IF(is_core, at + {block}, at)").alias("last_end"),
        *keys,
        *parts,
    )


def _numbers(first: str, last: str, step: int, odd: int = 0) -> str:
    return f"IF({first} <= {last}, sequence(2 * ({first}) + {odd}, 2 * ({last}) + {odd}, {2 * step}L), array())"
