"""The commands ``lab shedding`` and ``reproduce tu2006``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from recorded_data import data_folder
from slackwater.cli.lab_shedding import command
from slackwater.cli.reproduce import command as reproduce
from slackwater.errors import SlackwaterError
from slackwater.sim.shedding.recorded import read_arrivals

KEYS = {"law", "accumulated_violation_s", "delayed_rows", "max_overshoot_s", "loss_ratio", "rows"}
TRACE = data_folder() / "azure_llm.parquet"


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    pd.DataFrame({"second": range(30), "count": [40] * 30}).to_csv(path, index=False)
    return path


def invoke(*arguments: object) -> list[dict[str, object]]:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    parsed: list[dict[str, object]] = json.loads(result.stdout)
    return parsed


def test_figures_per_law(counts: Path) -> None:
    rows = invoke(counts, "--target-delay", "2s", "--scale", 10, "--laws", "none,ctrl", "--json")
    assert [row["law"] for row in rows] == ["none", "ctrl"]
    assert all(set(row) == KEYS and row["rows"] == 12_000 for row in rows)
    assert rows[0]["loss_ratio"] == 0.0


def test_capacity_and_cost_are_equivalent(counts: Path) -> None:
    common = (counts, "--target-delay", "1s", "--scale", 10, "--headroom", 0.8, "--laws", "ctrl", "--json")
    assert invoke(*common, "--capacity", 200) == invoke(*common, "--cost", "4ms")


def test_micro_batch_plant(counts: Path, tmp_path: Path) -> None:
    common = (counts, "--target-delay", "2s", "--scale", 10, "--plant", "micro-batch", "--json")
    none, closed = invoke(*common, "--laws", "none,ctrl-batch", "--plot", tmp_path / "delay.png")
    assert none["loss_ratio"] == 0.0
    assert closed["max_overshoot_s"] < none["max_overshoot_s"]  # type: ignore[operator]


def test_plot_is_written(counts: Path, tmp_path: Path) -> None:
    invoke(counts, "--target-delay", "2s", "--laws", "ctrl", "--json", "--plot", tmp_path / "delay.png")
    assert (tmp_path / "delay.png").stat().st_size > 0


def test_times_and_counts_give_the_same_arrivals(tmp_path: Path) -> None:
    times = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta([0.0, 0.5, 1.0, 1.5], unit="s")
    pd.DataFrame({"arrival_ts": times}).to_parquet(tmp_path / "times.parquet")
    pd.DataFrame({"count": [2, 2]}).to_csv(tmp_path / "counts.csv", index=False)
    assert np.array_equal(read_arrivals(tmp_path / "times.parquet"), read_arrivals(tmp_path / "counts.csv"))
    assert len(read_arrivals(tmp_path / "times.parquet", scale=2.5)) == 10


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        (("--target-delay", "2 parsecs"), "invalid-duration"),
        (("--target-delay", "0s"), "no-delay-at-all"),
        (("--target-delay", "2s", "--laws", "magic"), "unknown-law"),
        (("--target-delay", "2s", "--capacity", "5", "--cost", "1ms"), "capacity-and-cost"),
        (("--target-delay", "2s", "--arrival", "when"), "no-such-column"),
        (("--target-delay", "2s", "--start", "1h"), "no-arrivals"),
        (("--target-delay", "2s", "--scale", "0"), "invalid-scale"),
    ],
)
def test_bad_input_is_refused(counts: Path, arguments: tuple[str, ...], condition: str) -> None:
    result = CliRunner().invoke(command, [str(counts), *arguments])
    assert isinstance(result.exception, SlackwaterError)
    assert result.exception.condition == condition


def test_figure_of_the_paper(tmp_path: Path) -> None:
    result = CliRunner().invoke(reproduce, ["tu2006", "--figure", "6", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    as_printed, midway = json.loads(result.stdout)
    assert "as printed" in as_printed["figure"] and as_printed["same_conclusion"] is False
    assert midway["same_conclusion"] is True
    assert (tmp_path / "tu2006" / "figure_6.png").exists()


@pytest.mark.skipif(not TRACE.exists(), reason="needs the recorded data")
def test_recorded_trace() -> None:
    rows = invoke(TRACE, "--target-delay", "2s", "--duration", "300s", "--capacity", 3, "--json")
    by_law = {row["law"]: row for row in rows}
    assert by_law["ctrl"]["accumulated_violation_s"] < by_law["none"]["accumulated_violation_s"]  # type: ignore[operator]
