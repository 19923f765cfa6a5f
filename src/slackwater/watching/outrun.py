"""Notices a stream that changes faster than its method learns, and says what helps."""

from __future__ import annotations

from slackwater.units import duration_text, percent
from slackwater.watching.point import QUANTILES
from slackwater.watching.series import Series

TIMES_PROMISED = 3.0
"""Rows are lost faster than learned if more than this multiple of the promised share was late recently."""
LEAST_LATE = 20
"""Fewer late rows in the last minutes say nothing."""
TIMES_LATENESS = 10.0
"""Results wait too long if the wait is more than this multiple of the lateness of 99 % of the rows."""
LEAST_WAIT_MS = 10_000.0
"""A shorter wait is not worth a warning."""


def outrun(series: Series) -> str | None:
    """What is wrong, with the figures and the remedy; None while the method keeps up.

    Two things can be wrong: recently rows were lost at a multiple of the promised ratio, or the deficit that they left
    makes results much older than nearly all rows need.
    """
    about = series.about
    if about.kind != "completeness" or not about.promised or series.ended is not None:
        return None
    recent = series.recent_ledger()
    if recent.late >= LEAST_LATE and recent.drop_ratio > TIMES_PROMISED * about.promised:
        remedy = "set min_wait" if series.sources else "name the sources of the rows (SOURCE, source=), or set min_wait"
        return (
            f"rows come later than learned: {percent(recent.drop_ratio)} of the last 5 min were late,"
            f" {percent(about.promised)} is promised; {remedy}"
        )
    wait_ms, lateness_ms = series.latest("wait_ms"), series.recent_lateness_ms()
    if about.numeric_order or wait_ms is None or lateness_ms is None or series.ledger.drop_ratio <= about.promised:
        return None
    # A row is behind the clock by its lateness and by its time in the micro-batch.
    usual_ms = lateness_ms[QUANTILES.index(0.99)] + (series.latest("span_ms") or 0.0)
    if wait_ms > max(TIMES_LATENESS * usual_ms, LEAST_WAIT_MS):
        return (
            f"results wait {duration_text(wait_ms)} to earn back the rows that were lost, and 99 % of the rows come"
            f" within {duration_text(max(usual_ms, 0.0))}; set max_wait to bound the wait instead of the loss"
        )
    return None
