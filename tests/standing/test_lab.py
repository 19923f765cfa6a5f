"""``slackwater lab standing`` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from slackwater.cli.lab_standing import command
from slackwater.errors import InvalidData, InvalidOption
from slackwater.sim.brownian import brownian_streams
from slackwater.sim.ticks import common_part, tick_table

KEYS = {
    "aggregate", "within", "confidence", "fidelity", "hit_rate", "evaluations", "naive_evaluations",
    "optimal_evaluations", "queries",
}  # fmt: skip


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = brownian_streams(10, 400, seed=1)
    rows = pd.DataFrame(table.values, columns=table.names)
    rows["ts"] = pd.to_datetime(table.times, unit="ms", utc=True)
    path = tmp_path_factory.mktemp("standing") / "values.parquet"
    rows.melt("ts", var_name="stream", value_name="price").to_parquet(path)
    return path


def lab(values: Path, *more: str) -> list[dict[str, float]]:
    columns = ["--key", "stream", "--event-time", "ts", "--value", "price", "--json"]
    done = CliRunner().invoke(command, [str(values), *columns, *more], standalone_mode=False)
    if done.exception:
        raise done.exception
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def test_the_results_as_json(values: Path) -> None:
    found = lab(values, "--within", "1,0.2%", "--confidence", "90%,85%")
    assert len(found) == 4
    for entry in found:
        assert set(entry) >= KEYS
        assert entry["optimal_evaluations"] < entry["evaluations"] < entry["naive_evaluations"] == 4_000
        assert entry["fidelity"] >= entry["confidence"]


def test_a_csv_file_is_read_and_a_plot_is_written(values: Path, tmp_path: Path) -> None:
    file, plot = tmp_path / "values.csv", tmp_path / "plot.png"
    pd.read_parquet(values).to_csv(file, index=False)
    options = ("--within", "1", "--confidence", "90%")
    assert lab(file, *options, "--plot", str(plot)) == lab(values, *options)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_window_in_ticks_equals_one_in_time(values: Path) -> None:
    in_ticks = lab(values, "--aggregate", "max", "--window", "30ticks", "--confidence", "90%")
    in_time = lab(values, "--aggregate", "max", "--window", "30min", "--confidence", "90%")
    assert in_ticks == in_time
    assert in_ticks[0]["fidelity"] >= 0.9


def test_interruptions_are_reported(values: Path) -> None:
    found = lab(values, "--interrupt", "2@10min", "--confidence", "90%")
    assert found[0]["interruption"]["answers"] > 0  # type: ignore[index]


def test_weights_from_a_file(values: Path, tmp_path: Path) -> None:
    weights = pd.DataFrame(
        {"query": ["a", "a", "b", "lost"], "stream": ["s0", "s1", "s2", "nowhere"], "weight": [1.0, 2.0, 1.0, 1.0]}
    )
    weights.to_parquet(tmp_path / "weights.parquet")
    found = lab(values, "--weights", str(tmp_path / "weights.parquet"), "--within", "5", "--confidence", "90%")
    assert found[0]["queries"] == 2
    weights[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InvalidData, match=r"\[no-queries\]"):
        lab(values, "--weights", str(tmp_path / "empty.parquet"))


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        (("--within", "-1"), "invalid-bound"),
        (("--within", "much"), "invalid-bound"),
        (("--confidence", "100%"), "invalid-confidence"),
        (("--confidence", "0"), "invalid-confidence"),
        (("--aggregate", "max"), "no-window"),
        (("--window", "30min"), "window-without-extreme"),
        (("--interrupt", "some"), "invalid-interruption"),
        (("--interrupt", "99@10min"), "invalid-interruption"),
        (("--average-of", "50"), "too-few-streams"),
        (("--value", "volume"), "no-such-column"),
        (("--value", "stream"), "not-a-number"),
    ],
)
def test_invalid_options_are_refused(values: Path, options: tuple[str, ...], condition: str) -> None:
    with pytest.raises((InvalidOption, InvalidData), match=rf"\[{condition}\]"):
        lab(values, *options)


def test_streams_that_run_at_other_times_are_left_out() -> None:
    early = [("a", t) for t in range(20)] + [("b", t) for t in range(20)] + [("c", t) for t in range(2, 18)]
    rows = pd.DataFrame([*early, *[("later", t) for t in range(100, 140)]], columns=["stream", "t"])
    rows["v"] = 1.0
    part = common_part(tick_table(rows, "stream", "t", "v"))
    assert part.names == ["a", "b", "c"]
    assert (part.times[0], part.times[-1]) == (0.0, 19.0)


def test_rows_without_a_finite_number_are_left_out() -> None:
    rows = pd.DataFrame({"s": ["a", "a", "b"], "t": [1, 2, 1], "v": [1.0, np.nan, np.inf]})
    assert tick_table(rows, "s", "t", "v").values.tolist() == [[1.0]]
    with pytest.raises(InvalidData, match="no-values"):
        tick_table(rows[1:], "s", "t", "v")
