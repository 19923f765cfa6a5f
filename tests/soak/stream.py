"""Files of rows, as an ill-behaved source delivers them, and the same rows as a table."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SCHEMA = "id long, ts timestamp, arrived timestamp, sensor string, value double"
_HOUR_S = 3600.0
_2099_S = 4_070_908_800.0
EACH = 40
FLOOD = 3000

Rows = list[dict[str, Any]]
"""Times are in milliseconds since 1970; NaN is null."""


@dataclass
class Source:
    """A folder of JSON files and all rows that were put there.

    ``clock_s`` gives the time; rows arrive at that time.
    """

    folder: Path
    rng: np.random.Generator
    clock_s: Callable[[], float]
    rows: Rows = field(default_factory=list)
    files: int = 0

    def act(self, name: str) -> None:
        """Deliver what the source delivers when it behaves like this."""
        for made in _ACTS[name](self):
            self._put(made)

    def table(self) -> pd.DataFrame:
        """All rows, with the number of the file that holds them and the time at which it was put there."""
        return pd.DataFrame(self.rows, columns=["id", "ts", "arrived", "sensor", "value", "file", "put"])

    def made(self, count: int, *, shift_s: float = 0.0, mean_lateness_s: float = 1.0) -> Rows:
        """Rows of the last second on a clock that is wrong by ``shift_s``; one in thirty is half a minute late."""
        arrivals = self.clock_s() + shift_s - np.sort(self.rng.uniform(0, 1, count))[::-1]
        lateness = self.rng.exponential(mean_lateness_s, count)
        lateness[self.rng.random(count) < 1 / 30] += 30
        return [
            {
                "ts": float(round((arrival - late) * 1000)),
                "arrived": float(round(arrival * 1000)),
                "sensor": f"s{self.rng.integers(4)}",
                "value": float(self.rng.integers(100)),
            }
            for arrival, late in zip(arrivals, lateness, strict=True)
        ]

    def _put(self, made: Rows) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        about = {"file": self.files, "put": self.clock_s() * 1000}
        numbered = [{**row, "id": len(self.rows) + i, **about} for i, row in enumerate(made)]
        hidden = self.folder / f".{self.files}"
        hidden.write_text("".join(json.dumps(_as_json(row)) + "\n" for row in numbered))
        hidden.rename(self.folder / f"{self.files:06d}.json")
        self.rows += numbered
        self.files += 1


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: None if math.isnan(row[name]) else _iso(row[name]) for name in ("ts", "arrived")}
    return {name: value for name, value in {**row, **times}.items() if name not in ("file", "put")}


def _iso(ms: float) -> str:
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)).isoformat()


def _calm(source: Source) -> list[Rows]:
    return [source.made(EACH) for _ in range(2)]


def _stall(source: Source) -> list[Rows]:
    return []


def _flood(source: Source) -> list[Rows]:
    return [source.made(FLOOD) for _ in range(4)]


def _repeat(source: Source) -> list[Rows]:
    """The last rows once more."""
    again = [{key: row[key] for key in ("ts", "arrived", "sensor", "value")} for row in source.rows[-EACH:]]
    return [again, source.made(EACH)]


def _back(source: Source) -> list[Rows]:
    """Its clock goes back by an hour, and then is right again."""
    return [source.made(EACH, shift_s=-_HOUR_S), source.made(EACH)]


def _ahead(source: Source) -> list[Rows]:
    """Its clock is half a minute ahead, and then is right again."""
    return [source.made(EACH, shift_s=30.0), source.made(EACH)]


def _bad_times(source: Source) -> list[Rows]:
    """Times that no event can have, and arrivals that nobody should believe."""
    rows = source.made(EACH)
    for i, ms in enumerate((_2099_S * 1000, 0.0, 300_000.0, math.nan, -10 * 365 * 86_400_000.0)):
        rows[i]["ts"] = ms
    rows[5]["arrived"], rows[6]["arrived"] = math.nan, _2099_S * 1000
    return [rows]


def _heavy_tail(source: Source) -> list[Rows]:
    return [source.made(EACH, mean_lateness_s=20.0)]


def _tiny(source: Source) -> list[Rows]:
    """A file with nothing in it, and files with one row."""
    return [[], source.made(1), source.made(1)]


_ACTS: dict[str, Callable[[Source], list[Rows]]] = {
    "calm": _calm,
    "stall": _stall,
    "flood": _flood,
    "repeat": _repeat,
    "back": _back,
    "ahead": _ahead,
    "bad-times": _bad_times,
    "heavy-tail": _heavy_tail,
    "tiny": _tiny,
}
ACTS = tuple(_ACTS)
