"""``slackwater advise`` against the simulator's clairvoyant wait on the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from slackwater.cli.advise import _print_advice
from slackwater.cli.advise_plot import plot_advice
from slackwater.errors import InvalidData
from slackwater.sim.driver import clairvoyant_wait
from slackwater.sim.recorded import read_recording
from slackwater.spark.command.advise import advise, read_data

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advise")
    random = np.random.default_rng(0)
    stamps = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(4_000) * 1_000, unit="ms")
    slow = np.arange(4_000) % 2 == 1
    late = random.exponential(np.where(slow, 60_000.0, 5_000.0)).round() + 1.0
    seen = stamps + pd.to_timedelta(late, unit="ms")
    table = pd.DataFrame({"ts": stamps, "seen": seen})
    table["host"] = np.where(slow, "slow", "fast")
    table["n"] = 1
    table.loc[10, "ts"] = seen[10] + pd.Timedelta(days=400)
    table = table.sort_values("seen", kind="stable")
    table.loc[20, "ts"] = pd.NaT
    table.to_parquet(folder / "t.parquet", coerce_timestamps="us")
    table.to_csv(folder / "t.csv", index=False)
    return folder


def test_data_may_be_compressed_a_folder_or_a_pattern(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = pd.read_parquet(folder / "t.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, part in enumerate((table[:1_000], table[1_000:])):
        part.to_json(parts / f"{number}.json.gz", orient="records", lines=True, date_format="iso")
    for where in (str(parts), str(parts / "*.gz")):
        assert advise(read_data(spark, where), "ts", "seen").rows == 4_000


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_curve_is_the_clairvoyant_wait(spark: SparkSession, folder: Path, name: str) -> None:
    advice = advise(read_data(spark, str(folder / name)), "ts", "seen", 0.01, ["host"])
    trace = read_recording(folder / name, "ts", "seen").trace
    assert advice.rows == 4_000
    assert advice.invalid_rows == 1
    for ratio, wait in advice.curve:
        # Both are a row's own lateness; a rank may round to the neighbouring row.
        below, above = (clairvoyant_wait(trace, max(0.0, ratio + step / trace.rows)) for step in (1, -1))
        assert below - 1e-3 <= wait <= above + 1e-3
    assert [source.source for source in advice.sources] == ["slow", "fast"]
    assert sum(period.rows for period in advice.periods) == 3_999
    expected = "1 rows have an event time more than a minute after their arrival"
    assert any(expected in suspicion for suspicion in advice.suspicions)
    assert "withWatermark(" in advice.recommendation
    assert "Filter such rows out" in advice.recommendation
    assert "Sources differ" in advice.recommendation


def test_advice_is_printed_and_plotted(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    advice = advise(read_data(spark, str(folder / "t.parquet")), "ts", "seen", 0.05)
    console = Console(record=True, width=80)
    _print_advice(console, advice)
    assert "smallest constant wait" in console.export_text()
    plot_advice(tmp_path / "a.png", "t", advice)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_bad_data_is_reported(spark: SparkSession, folder: Path) -> None:
    data = read_data(spark, str(folder / "t.parquet"))
    with pytest.raises(InvalidData, match="no-such-column.*use one of: ts, seen"):
        advise(data, "nothing", "seen")
    with pytest.raises(InvalidData, match="wrong-type.*'n' has type bigint"):
        advise(data, "n", "seen")
    with pytest.raises(InvalidData, match="no-such-file.*nowhere does not exist"):
        read_data(spark, str(folder / "nowhere"))
    (folder / "broken.parquet").write_text("no Parquet")
    with pytest.raises(InvalidData, match="unreadable-file"):
        read_data(spark, str(folder / "broken.parquet"))
    with pytest.raises(InvalidData, match="no-valid-rows"):
        advise(data.where("ts IS NULL"), "ts", "seen")
