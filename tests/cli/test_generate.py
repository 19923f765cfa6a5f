"""``slackwater generate``: the same seed gives the same rows, and a file that exists is left alone."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from slackwater.cli.generate import command
from slackwater.errors import InvalidData, InvalidOption


def generate(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_rows_are_those_of_the_seed_and_some_clocks_are_wrong(tmp_path: Path) -> None:
    first, again, other = (str(tmp_path / name) for name in ("first.parquet", "again.parquet", "other.parquet"))
    options = ("--rows", "6000", "--wrong-clocks", "9")
    written = json.loads(generate(first, *options, "--json").output)
    assert written == {"file": first, "rows": 6000, "rate": 100, "from": "2026-01-05T08:00:00Z"}
    assert "6,000 rows" in generate(again, *options).output
    generate(other, *options, "--seed", "1")
    assert pq.read_table(first) == pq.read_table(again) != pq.read_table(other)
    rows = pq.read_table(first).to_pylist()
    wrong = [row for row in rows if row["ts"] is None or row["ts"].year != 2026]
    years = [row["ts"].year if row["ts"] else None for row in wrong]
    assert years == [1970, 2099, None] * 3 and len({row["sensor"] for row in wrong}) > 1
    assert rows == sorted(rows, key=lambda row: row["arrived"])
    assert all(row["ts"] <= row["arrived"] for row in rows if row not in wrong)
    assert rows[-1]["arrived"] - rows[0]["arrived"] == dt.timedelta(seconds=59.99)


def test_a_file_that_exists_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.parquet"
    file.write_text("mine")
    result = generate(str(file))
    assert isinstance(result.exception, InvalidData) and "[file-exists]" in str(result.exception)
    assert file.read_text() == "mine"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    result = generate(str(tmp_path / "nowhere" / "rows.parquet"), "--rows", "10")
    assert isinstance(result.exception, InvalidOption) and "there is no folder" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [(("rows.csv",), "unknown-format"), (("x.parquet", "--rows", "3", "--wrong-clocks", "4"), "too-many-wrong-clocks")],
)
def test_a_file_that_would_mislead_is_refused(tmp_path: Path, arguments: tuple[str, ...], condition: str) -> None:
    result = generate(str(tmp_path / arguments[0]), *arguments[1:])
    assert isinstance(result.exception, InvalidOption) and result.exception.condition == condition
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", ["1", "5"])
def test_few_rows_are_no_error(tmp_path: Path, rows: str) -> None:
    assert generate(str(tmp_path / "few.parquet"), "--rows", rows).exit_code == 0
