"""Panes put together to segments before windows: where windows overlap much, a pane need not go into each of them.

Put the windows in blocks of ``m`` that end one SLIDE after another, the first of them a SLIDE after E. Rows between the
begin of the last of them and E are in every window of the block: its *core*. So a pane goes

* into the core of each block that holds it whole, which is published for the windows of the block when E is reached;
* into single windows where it is in some of the block only: at their begin, where it waits for E too, since nothing
  happens to these windows until then, and at their end, where it goes on at once.

That is some m + n/m segments for a pane that n windows hold, 2 √n with m = √n, and a window has state of its own only
from E on: not n of them are brought up to date in every micro-batch, but some m. It costs one aggregation more.

A late pane takes part in what is still ahead of its heartbeat: in the cores of blocks that have not begun, and in
single windows that are open. Times are microseconds; ``lifted`` is the pane's event time (see ``panes``).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.units import MS_US


@dataclass(frozen=True, slots=True)
class Sliding:
    """A sliding window by its length, slide and pane, in microseconds."""

    length: int
    slide: int
    pane: int

    @property
    def first_end(self) -> str:
        """The end of the first window that holds the pane that ends at ``end``; windows start at multiples of SLIDE."""
        return f"(end + pmod({self.length} - end, {self.slide}L))"

    @property
    def last_end(self) -> str:
        """The end of the last one."""
        start = f"(end - {self.pane})"
        return f"({start} - pmod({start}, {self.slide}L) + {self.length})"


def segments_of(panes: DataFrame, sliding: Sliding, windows: int, keys: list[str], parts: list[str]) -> DataFrame:
    """A row for each segment of each pane, in blocks of so many ``windows``: ``close_us``, ``first_end``, ``last_end``.

    These two are the ends of the first and the last window that the segment goes into.
    """
    slide, block = sliding.slide, windows * sliding.slide
    ahead = "greatest(end, lifted + 1)"  # the least E that is neither inside the pane nor passed
    latest = f"(end - {sliding.pane} + {sliding.length - block})"  # the greatest E whose last window holds the pane
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
    cores = "first_core <= last_core"
    # A number for each segment: twice the end of a single window, or twice the E of a core and one.
    at_its_end = _numbers("first_end", f"IF({cores}, first_core, last_end)", slide)
    at_its_begin = _numbers(f"last_core + {block + slide}", "last_end", slide)
    whole = _numbers("first_core", "last_core", block, odd=1)
    dealt = placed.selectExpr(
        "end",
        "lifted",
        f"explode(concat({at_its_end}, IF({cores}, concat({at_its_begin}, {whole}), array()))) AS number",
        *keys,
        *parts,
    ).selectExpr("end", "lifted", "number % 2 != 0 AS is_core", "shiftright(number, 1) AS at", *keys, *parts)
    begun = f"(at - {slide} - pmod(at - {slide + sliding.length}, {block}L))"  # the E of a window's block
    return dealt.select(
        F.expr(
            f"CASE WHEN is_core THEN at - {MS_US} WHEN at <= lifted THEN lifted "
            f"WHEN {begun} >= {ahead} THEN {begun} - {MS_US} ELSE at - {MS_US} END"
        ).alias("close_us"),
        F.expr(f"IF(is_core, at + {slide}, at)").alias("first_end"),
        F.expr(f"IF(is_core, at + {block}, at)").alias("last_end"),
        *keys,
        *parts,
    )


def _numbers(first: str, last: str, step: int, odd: int = 0) -> str:
    return f"IF({first} <= {last}, sequence(2 * ({first}) + {odd}, 2 * ({last}) + {odd}, {2 * step}L), array())"
