"""Compares what queries published and reported with what the rows and Spark's own log say they must have.

Every check returns what is wrong, in words; nothing if all is right. All is computed with pandas from the rows that
were put: no code of the product and no Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tests.soak.checkpoint_log import CheckpointLog

_DAY_MS = 86_400_000.0
_SLIDE_MS, _RANGE_MS, _TUMBLING_MS = 2000, 6000, 5000
Problems = list[str]


def judged(kind: str, rows: pd.DataFrame, log: CheckpointLog) -> pd.DataFrame:
    """The rows that were read, with ``valid`` and ``late`` as the heartbeat in Spark's log judges them."""
    placed = log.place(rows)
    arrived = placed["arrived"].where(placed["arrived"].notna(), placed["put"]) if kind != "native" else placed["put"]
    in_force = log.heartbeats_in_force(follows_rows=kind != "per_row")
    ts = placed["ts"]
    placed["valid"] = ts.notna() & ~((ts >= 0) & (ts < _DAY_MS)) & (ts <= arrived + _DAY_MS)
    placed["late"] = placed["valid"] & (ts < placed["batch"].map(in_force))
    return placed


def check_heartbeats(log: CheckpointLog) -> Problems:
    """The heartbeat and the watermark never go back, and no micro-batch is missing."""
    numbers = sorted(log.batches)
    problems = [] if numbers == list(range(len(numbers))) else ["a micro-batch is missing in the log"]
    for name in ("watermark_ms", "heartbeat_ms"):
        values = [value for n in numbers if (value := getattr(log.batches[n], name)) is not None]
        backwards = [(a, b) for a, b in pairwise(values) if b < a]
        problems += [f"{name} went back from {a} to {b}" for a, b in backwards]
    return problems


def check_ledger(ledger: dict[str, Any], placed: pd.DataFrame, may_be_inexact: bool) -> Problems:
    """Every row is counted once, by what became of it."""
    late, invalid = int(placed["late"].sum()), int((~placed["valid"]).sum())
    expected = {"on_time": len(placed) - late - invalid, "late": late, "invalid": invalid, "shed": 0}
    return _compare_ledger(ledger, expected, may_be_inexact)


def check_simple_ledger(ledger: dict[str, Any], rows: int) -> Problems:
    return _compare_ledger(ledger, {"on_time": rows, "late": 0, "invalid": 0, "shed": 0}, may_be_inexact=False)


def _compare_ledger(ledger: dict[str, Any], expected: dict[str, int], may_be_inexact: bool) -> Problems:
    found = {name: ledger[name] for name in expected}
    if ledger["exact"]:
        return [] if found == expected else [f"the ledger says {found}, the log {expected}"]
    if not ledger["why"]:
        return ["the ledger is not exact and does not say why"]
    if not may_be_inexact:
        return [f"the ledger is not exact, and nothing excuses it: {ledger['why']}"]
    above = {name: (found[name], count) for name, count in expected.items() if found[name] > count}
    return [f"the ledger counts more than there is: {above}"] if above else []


def check_shed(ledger: dict[str, Any], rows: pd.DataFrame, published: pd.DataFrame, may_be_inexact: bool) -> Problems:
    """Every row is kept once or counted as shed."""
    problems = []
    if published["id"].duplicated().any():
        problems.append("a row was published twice")
    if not published["id"].isin(rows["id"]).all():
        problems.append("a row was published that nobody put there")
    kept = len(published)
    expected = {"on_time": kept, "late": 0, "invalid": 0, "shed": len(rows) - kept}
    return problems + _compare_ledger(ledger, expected, may_be_inexact)


def check_results(kind: str, placed: pd.DataFrame, log: CheckpointLog, published: pd.DataFrame) -> Problems:
    """The published windows equal those of a batch job over the same rows, each once."""
    return _RESULTS[kind](placed, log, published)


def _native(placed: pd.DataFrame, log: CheckpointLog, published: pd.DataFrame) -> Problems:
    valid = placed[placed["valid"]]
    ends = valid["ts"] // _TUMBLING_MS * _TUMBLING_MS + _TUMBLING_MS
    # Spark refuses rows by the watermark of the micro-batch before
    before = valid["batch"].sub(1).map({n: batch.watermark_ms for n, batch in log.batches.items()}).fillna(0)
    taken = (ends > before) & (ends <= log.last.watermark_ms)
    exact = _aggregated(valid[taken].assign(window_end=ends[taken]))
    found = published.assign(window_end=_ms(published["window"].map(lambda window: window["end"])))
    return _same(_tuples(found), _tuples(exact))


def _panes(placed: pd.DataFrame, log: CheckpointLog, published: pd.DataFrame) -> Problems:
    """The windows on time and their late panes together are exact.

    A late row comes out once the watermark has risen after it.
    """
    on_time = published[~published["late"]]
    problems = ["a window was published twice"] if on_time.duplicated(["window_end", "sensor"]).any() else []
    found = published.assign(window_end=_ms(published["window_end"])).groupby(["window_end", "sensor"])
    watermarks = placed["batch"].map({n: batch.watermark_ms for n, batch in log.batches.items()})
    valid = placed[placed["valid"] & (watermarks < log.last.watermark_ms)]
    first = valid["ts"] // _SLIDE_MS * _SLIDE_MS + _SLIDE_MS
    steps = range(0, _RANGE_MS, _SLIDE_MS)
    copies = pd.concat([valid.assign(window_end=first + step) for step in steps])
    exact = _aggregated(copies[copies["window_end"] <= log.last.watermark_ms])
    return problems + _same(_tuples(found[["n", "total"]].sum().reset_index()), _tuples(exact))


def _per_row(placed: pd.DataFrame, log: CheckpointLog, published: pd.DataFrame) -> Problems:
    """Each row on time has its result, and each late row comes out as one."""
    late = published[published["late"]]
    ids = sorted(row["id"] for row in late["late_row"])
    problems = [] if ids == sorted(placed.loc[placed["late"], "id"]) else ["the late rows are not those of the log"]
    on_time = placed[placed["valid"] & ~placed["late"]].sort_values(["sensor", "ts"])
    parts = []
    for _, rows in on_time.groupby("sensor"):
        at, sums = rows["ts"].to_numpy(), np.concatenate([[0.0], np.cumsum(rows["value"])])
        begin, end = np.searchsorted(at, at - _RANGE_MS, "right"), np.searchsorted(at, at, "right")
        parts.append(rows.assign(window_end=at, n=end - begin, total=sums[end] - sums[begin]))
    exact = pd.concat(parts) if parts else on_time.assign(window_end=0.0, n=0, total=0.0)
    # heartbeats are rows on this path, so the one that was read in the last micro-batch has released its rows
    released_ms = -np.inf if log.last.heartbeat_ms is None else log.last.heartbeat_ms
    passed = exact[exact["window_end"] < released_ms]
    found = published[~published["late"]]
    return problems + _same(_tuples(found.assign(window_end=_ms(found["window_end"]))), _tuples(passed))


_RESULTS: dict[str, Callable[[pd.DataFrame, CheckpointLog, pd.DataFrame], Problems]] = {
    "native": _native,
    "panes": _panes,
    "per_row": _per_row,
}


def _aggregated(rows: pd.DataFrame) -> pd.DataFrame:
    grouped = rows.groupby(["window_end", "sensor"])["value"]
    return grouped.agg(n="count", total="sum").reset_index()


def _tuples(table: pd.DataFrame) -> list[tuple[int, str, int, float]]:
    columns = (table["window_end"].astype("int64"), table["sensor"], table["n"].astype("int64"), table["total"])
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _ms(times: pd.Series[Any]) -> pd.Series[Any]:
    return pd.to_datetime(times, utc=True).astype("datetime64[ms, UTC]").astype("int64")


def _same(found: list[Any], exact: list[Any]) -> Problems:
    if found == exact:
        return []
    more, less = sorted(set(found) - set(exact)), sorted(set(exact) - set(found))
    return [f"{len(found)} results and not {len(exact)}; too many {more[:5]}; missing {less[:5]}"]
