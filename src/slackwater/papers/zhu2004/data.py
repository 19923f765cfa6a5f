"""The streams of the experiments: synthetic ones always, recorded ones where they are to be had."""

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
    """Where recorded data lies: ``SLACKWATER_DATA``, else ``shared/data`` beside the working directory or above."""
    named = os.environ.get("SLACKWATER_DATA")
    if named:
        return Path(named) if Path(named).is_dir() else None
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "shared" / "data").is_dir():
            return folder / "shared" / "data"
    return None


def synthetic(ticks: int = SYNTHETIC_TICKS) -> TickTable:
    """Ten streams of exact Brownian motion."""
    return brownian_streams(STREAMS, ticks, seed=2004)


def independent(of: int, queries: int, ticks: int = INDEPENDENT_TICKS) -> TickTable:
    """Exact Brownian motion for averages that share no stream, so that each of them counts."""
    return brownian_streams(of * queries, ticks, seed=2004)


def recorded(folder: Path) -> dict[str, TickTable]:
    """Ten shares, ten stations' temperature, ten stations' pressure."""
    shares = common_part(tick_table(pd.read_parquet(folder / "equity_minute.parquet"), "symbol", "ts", "close"))
    air = pd.read_parquet(folder / "beijing_air.parquet")
    found = {"shares": shares.only(_fullest(shares))}
    for name in ("temp", "pres"):
        table = tick_table(air, "station", "ts", name)
        found[name] = table.only(_fullest(table)).head(WEATHER_TICKS)
    return found


def _fullest(table: TickTable) -> list[str]:
    """The ten streams with the most rows on common ticks."""
    rows = (~np.isnan(table.values)).sum(axis=0)
    best = np.sort(np.argsort(-rows, kind="stable")[:STREAMS])
    return [table.names[column] for column in best]


@cache
def streams() -> dict[str, TickTable]:
    """Every data set that is there, by name."""
    folder = data_folder()
    return {"synthetic": synthetic(), **(recorded(folder) if folder is not None else {})}
