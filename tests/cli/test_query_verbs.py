"""``check`` and ``explain``: answered without Spark, with exit codes that a script can use."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from slackwater.cli import check, explain, run
from slackwater.errors import QueryTextError

GOOD = "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute WATTR ts DRATIO 1%]"
SCHEMA = "CREATE TABLE Sensors (ts TIMESTAMP, value DOUBLE)"


def put(folder: Path, text: str) -> str:
    path = folder / "query.sql"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_check_says_right(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(check.command, [put(tmp_path, f"{GOOD};\n{GOOD}")])
    assert outcome.exit_code == 0
    assert outcome.output.splitlines() == [f"right (native): {GOOD}"] * 2


def test_check_points_at_the_character_and_ends_with_2(tmp_path: Path) -> None:
    file = put(tmp_path, GOOD.replace("WATTR ts", "WATTR tss"))
    schema = tmp_path / "streams.sql"
    schema.write_text(SCHEMA, encoding="utf-8")
    command = [sys.executable, "-m", "slackwater.cli.main", "check", file, "--schema", str(schema)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "[unknown-column] Sensors has no column 'tss'; use one of ts, value" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].strip() == "^" * len("WATTR tss")
    assert "Traceback" not in outcome.stderr


def test_check_as_json(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(check.command, [put(tmp_path, "SELECT"), "--json"])
    assert outcome.exit_code == 2
    assert json.loads(outcome.output)["condition"] == "no-window"
    outcome = CliRunner().invoke(check.command, [put(tmp_path, GOOD), "--json"])
    assert json.loads(outcome.output) == {"right": True, "queries": [{"query": GOOD, "path": "native"}]}


def test_explain_as_text_and_as_json(tmp_path: Path) -> None:
    file = put(tmp_path, GOOD)
    text = CliRunner().invoke(explain.command, [file]).output
    assert "path        native: Spark aggregates panes of 1 minute, 5 make a window" in text
    facts = json.loads(CliRunner().invoke(explain.command, [file, "--json"]).output)
    assert facts[0]["promise"] == ["at most 1% of the rows are late"]


def test_a_file_in_another_encoding_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "query.sql"
    path.write_bytes("SELECT 1,\n MAX(v) AS größe".encode("latin-1"))
    command = [sys.executable, "-m", "slackwater.cli.main", "check", str(path)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert f"[not-utf-8] byte 24 of {path} (0xf6, in line 2) is no UTF-8; save it as UTF-8" in outcome.stderr


def test_a_byte_order_mark_is_taken_and_an_empty_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "query.sql"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert CliRunner().invoke(check.command, [str(path)]).exit_code == 0
    path.write_bytes(b"")
    outcome = CliRunner().invoke(check.command, [str(path), "--json"])
    assert outcome.exit_code == 2 and json.loads(outcome.output)["condition"] == "empty-query"


def test_run_refuses_a_standing_query_before_spark_is_started(tmp_path: Path) -> None:
    for text in ("SELECT AVG(value) FROM Sensors", "SELECT MAX(AVG(value)) FROM Sensors [RANGE 5 minutes]"):
        file = put(tmp_path, f"{text} WITHIN 2 CONFIDENCE 95%")
        outcome = CliRunner().invoke(run.command, [file, "--source", "generator:10", "--seconds", "1"])
        assert isinstance(outcome.exception, QueryTextError) and outcome.exception.condition == "standing-query"
        assert str(outcome.exception).splitlines()[-1] == " " * (len(text) + 3) + "^^^^^^"
    assert CliRunner().invoke(check.command, [file]).exit_code == 0
