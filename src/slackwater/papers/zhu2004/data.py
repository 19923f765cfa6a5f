"""The streams of the experiments: synthetic ones, and recorded ones if their folder is given."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from slackwater.sim.brownian import brownian_streams
from slackwater.sim.ticks import TickTable, common_part, tick_table

STREAMS = 10
SYNTHETIC_TICKS = 5_000
INDEPENDENT_TICKS = 8_000
WEATHER_TICKS = 8_760


def data_folder() -> Path | None:
    """The folder of recorded data, named by the environment variable ``SLACKWATER_DATA``; None if it does not exist."""
    named = os.environ.get("SLACKWATER_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def synthetic(ticks: int = SYNTHETIC_TICKS) -> TickTable:
    """Ten streams of exact Brownian motion."""
    return brownian_streams(STREAMS, ticks, seed=2004)


def independent(of: int, queries: int, ticks: int = INDEPENDENT_TICKS) -> TickTable:
    """Exact Brownian motion for ``queries`` averages that share no stream, so that their results are independent."""
    return brownian_streams(of * queries, ticks, seed=2004)


def recorded(folder: Path) -> dict[str, TickTable]:
    """Ten shares, and the temperature and pressure of ten weather stations."""
    shares = common_part(tick_table(pd.read_parquet(folder / "equity_minute.parquet"), "symbol", "ts", "close"))
    air = pd.read_parquet(folder / "beijing_air.parquet")
    found = {"shares": shares.only(_fullest(shares))}
    for name in ("temp", "pres"):
        table = tick_table(air, "station", "ts", name)
        found[name] = table.only(_fullest(table)).head(WEATHER_TICKS)
    return found


def _fullest(table: TickTable) -> list[str]:
    """The ten streams with the most rows."""
    rows = (~np.isnan(table.values)).sum(axis=0)
    best = np.sort(np.argsort(-rows, kind="stable")[:STREAMS])
    return [table.names[column] for column in best]


@cache
def streams() -> dict[str, TickTable]:
    """All available data sets by name."""
    folder = data_folder()
    return {"synthetic": synthetic(), **(recorded(folder) if folder is not None else {})}
