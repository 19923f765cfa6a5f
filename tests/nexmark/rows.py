"""Nexmark's three streams, small and seeded: persons, the auctions they open, and the bids of others.

Event times (``dateTime``) are spread over two minutes. Rows arrive late by an exponential lateness with a mean of half
a second. The last row of each stream lies far behind the others, so that every window before it closes.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

STREAMS = ("person", "auction", "bid")
START = pd.Timestamp("2024-03-01 12:00:00", tz="UTC")
SECONDS = 120
CLOSING = START + pd.Timedelta(days=2)
PERSONS, AUCTIONS, BIDS = 60, 90, 800
_STATES = ["OR", "ID", "CA", "WA", "AZ"]
_CHANNELS = ["apple", "google", "Facebook", "baidu", "channel-17", "channel-4"]


def nexmark_rows(seed: int = 5) -> dict[str, pd.DataFrame]:
    """The rows of each stream in the order of their arrival."""
    rng = np.random.default_rng(seed)
    persons = pd.DataFrame({"id": 1000 + np.arange(PERSONS)})
    persons["name"] = [f"person {i}" for i in persons["id"]]
    persons["emailAddress"] = [f"p{i}@example.com" for i in persons["id"]]
    persons["creditCard"] = "0000 0000 0000 0000"
    persons["city"] = rng.choice(["Boise", "Bend", "Kent", "Phoenix"], PERSONS)
    persons["state"] = rng.choice(_STATES, PERSONS)
    persons["dateTime"] = _times(rng, PERSONS)
    persons["extra"] = "-"
    auctions = pd.DataFrame({"id": 1 + np.arange(AUCTIONS)})
    auctions["itemName"] = [f"item {i}" for i in auctions["id"]]
    auctions["description"] = "as new"
    auctions["initialBid"] = rng.integers(1, 100, AUCTIONS)
    auctions["reserve"] = auctions["initialBid"] + rng.integers(1, 100, AUCTIONS)
    auctions["dateTime"] = _times(rng, AUCTIONS)
    auctions["expires"] = auctions["dateTime"] + pd.to_timedelta(rng.integers(2, 20, AUCTIONS), unit="s")
    auctions["seller"] = rng.choice(persons["id"], AUCTIONS)
    auctions["category"] = rng.integers(10, 15, AUCTIONS)
    auctions["extra"] = "-"
    bids = pd.DataFrame({"dateTime": _times(rng, BIDS)})
    open_before = np.searchsorted(np.sort(auctions["dateTime"]), bids["dateTime"])
    nth = np.maximum(open_before - rng.geometric(0.25, BIDS), 0)
    by_time = auctions.sort_values("dateTime", kind="stable")["id"].to_numpy()
    bids["auction"] = by_time[nth]
    bids["bidder"] = rng.choice(persons["id"], BIDS)
    bids["price"] = np.round(10 ** rng.uniform(2, 7, BIDS)).astype("int64")
    bids["channel"] = rng.choice(_CHANNELS, BIDS)
    bids["url"] = [f"https://www.nexmark.com/{n % 7}/item.htm?query=1&channel_id={n % 11}" for n in range(BIDS)]
    bids["extra"] = rng.choice(["aacc", "cbd", "-", "cccc"], BIDS)
    return {name: _arriving(rng, frame) for name, frame in zip(STREAMS, (persons, auctions, bids), strict=True)}


def write_files(rows: dict[str, pd.DataFrame], folder: Path, files: int) -> dict[str, list[Path]]:
    """Write each stream as Parquet files, one for each of its micro-batches; the last one holds the closing row."""
    paths: dict[str, list[Path]] = {}
    for name, frame in rows.items():
        edges = [*np.linspace(0, len(frame) - 1, files).astype(int).tolist(), len(frame)]
        (folder / name).mkdir(parents=True)
        for number, (start, end) in enumerate(itertools.pairwise(edges)):
            path = folder / name / f"{number}.parquet"
            frame.iloc[start:end].to_parquet(path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True)
            paths.setdefault(name, []).append(path)
    return paths


def _times(rng: np.random.Generator, count: int) -> pd.Series:
    seconds = np.sort(rng.uniform(0, SECONDS, count))
    return START + pd.Series(pd.to_timedelta(np.round(seconds * 1000), unit="ms"))


def _arriving(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    lateness = pd.to_timedelta(np.round(rng.exponential(500.0, len(frame))), unit="ms")
    arrived = frame.assign(arrived=frame["dateTime"] + lateness).sort_values("arrived", kind="stable")
    closing = arrived.iloc[[-1]].assign(dateTime=CLOSING, arrived=CLOSING)
    for number, column in enumerate(("id", "auction", "seller", "bidder"), 1):
        if column in closing:
            closing[column] = -number  # joins nothing
    if "expires" in closing:
        closing["expires"] = CLOSING
    return pd.concat([arrived, closing], ignore_index=True)
