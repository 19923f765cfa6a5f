"""``check``, ``explain`` and the bad input that ``run`` reports before Spark starts."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from slackwater.cli import advise, check, explain, run
from slackwater.errors import SlackwaterError
from slackwater.spark.command import session

GOOD = "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute WATTR ts DRATIO 1%]"
SCHEMA = "CREATE TABLE Sensors (ts TIMESTAMP, value DOUBLE)"


def write_query(folder: Path, text: str) -> str:
    path = folder / "query.sql"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_check_accepts_valid_queries(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(check.command, [write_query(tmp_path, f"{GOOD};\n{GOOD}")])
    assert outcome.exit_code == 0
    assert outcome.output.splitlines() == [f"right (native): {GOOD}"] * 2


def test_check_points_at_the_character_and_ends_with_2(tmp_path: Path) -> None:
    file = write_query(tmp_path, GOOD.replace("WATTR ts", "WATTR tss"))
    schema = tmp_path / "streams.sql"
    schema.write_text(SCHEMA, encoding="utf-8")
    command = [sys.executable, "-m", "slackwater.cli.main", "check", file, "--schema", str(schema)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "[unknown-column] Sensors has no column 'tss' (did you mean ts?); use one of ts, value" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].strip() == "^" * len("WATTR tss")
    assert "Traceback" not in outcome.stderr


def test_check_as_json(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(check.command, [write_query(tmp_path, "SELECT"), "--json"])
    assert outcome.exit_code == 2
    assert json.loads(outcome.output)["condition"] == "no-window"
    outcome = CliRunner().invoke(check.command, [write_query(tmp_path, GOOD), "--json"])
    assert json.loads(outcome.output) == {"right": True, "queries": [{"query": GOOD, "path": "native"}]}


def test_explain_as_text_and_as_json(tmp_path: Path) -> None:
    file = write_query(tmp_path, GOOD)
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
    assert f"[not-utf-8] byte 24 of {path} (0xf6, in line 2) is not UTF-8; save the file as UTF-8" in outcome.stderr


def test_a_byte_order_mark_is_accepted_and_an_empty_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "query.sql"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert CliRunner().invoke(check.command, [str(path)]).exit_code == 0
    path.write_bytes(b"")
    outcome = CliRunner().invoke(check.command, [str(path), "--json"])
    assert outcome.exit_code == 2 and json.loads(outcome.output)["condition"] == "empty-query"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording and a table; starting Spark fails the test."""

    def fail(*_: str) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "local_session", fail)
    monkeypatch.chdir(tmp_path)
    at = pd.to_datetime([1_700_000_000], unit="s")
    pd.DataFrame({"symbol": ["a"], "ts": at, "price": [1.0], "size": [2.0]}).to_parquet("prices.parquet")
    (tmp_path / "holdings.csv").write_text("portfolio,symbol,weight\np,a,1\n")
    return tmp_path


WORTH = "SELECT portfolio, SUM(weight * price) FROM Prices JOIN Holdings USING (symbol) GROUP BY portfolio"
STANDING = f"{WORTH} WITHIN 1% CONFIDENCE 90%"
HOLDINGS = ("--table", "Holdings=csv:holdings.csv")


@pytest.mark.parametrize(
    ("text", "options", "condition", "message"),
    [
        (STANDING, ("--table", "Holdings"), "wrong-table", "--table Holdings is not NAME=FORMAT:PATH"),
        (STANDING, ("--table", "Holdings=orc:holdings.csv"), "wrong-table", "with format parquet, json or csv"),
        (
            STANDING,
            ("--table", "Holdings=csv:nothing.csv"),
            "no-such-file",
            "--table Holdings: nothing.csv does not exist",
        ),
        (STANDING, (*HOLDINGS, "--table", "holdings=csv:holdings.csv"), "table-twice", "--table holdings"),
        (STANDING, ("--table", "Holding=csv:holdings.csv"), "no-such-table", "use one of: Prices, Holdings"),
        (STANDING, (), "which-stream", "Prices and Holdings could each be the stream"),
        (STANDING, (*HOLDINGS, "--table", "Prices=csv:holdings.csv"), "which-stream", "every table"),
        (GOOD, ("--table", "sensors=csv:holdings.csv"), "which-stream", "Sensors has a window, so it is the stream"),
        (WORTH, HOLDINGS, "no-window", "no stream in this query has a window"),
        (GOOD.replace("]", "] JOIN S [RANGE 1 minute]"), (), "two-streams", "the command has one source"),
        (STANDING, (*HOLDINGS, "--late-sink", "json:late"), "nothing-late", "leave it out"),
        (STANDING, (*HOLDINGS, "--key", "symbols"), "no-such-column", "--key symbols is not a column"),
        (STANDING, (*HOLDINGS, "--value", "size"), "not-standing", "weight * price is not size times a weight"),
        (STANDING.replace("WITHIN", "HAVING 1 < 2 WITHIN"), HOLDINGS, "not-standing", "cannot have HAVING"),
        (
            GOOD,
            ("--event-time", "tss"),
            "no-such-column",
            "--event-time tss is not a column; use one of: symbol, ts, price, size",
        ),
        (GOOD, ("--source", "delta:table"), "unknown-source", "unknown source `delta:table`; use json:FOLDER"),
        (GOOD, ("--sink", "delta:table"), "unknown-sink", "--sink: unknown sink `delta:table`; use console"),
        (GOOD, ("--key", "symbol"), "not-standing", "--key symbol is for standing queries"),
        (GOOD, ("--schema", "ts TIMESTAMP"), "option-not-used", "Parquet files name their columns"),
        (GOOD, ("--source", "json:in", "--schema", "ts TIMESTMP"), "wrong-schema", "(did you mean TIMESTAMP?)"),
        (GOOD, ("--source", "json:in", "--schema", "ts TIMESTAMP, x"), "wrong-schema", "x has no type; write names"),
        (GOOD.replace("value", "prise"), (), "unknown-column", "there is no column 'prise' (did you mean price?)"),
        (
            GOOD.replace("MAX(value)", "SUMM(price)"),
            (),
            "unknown-function",
            "SUMM (did you mean sum?)",
        ),
        (GOOD, ("--source", "json:.", "--schema", "ts TIMESTAMP"), "other-format", "write --source csv:."),
        (STANDING, ("--table", "Holdings(a INT, b)=csv:holdings.csv"), "wrong-schema", "b has no type"),
    ],
)
def test_run_reports_bad_input_before_spark_starts(
    recorded: Path, text: str, options: tuple[str, ...], condition: str, message: str
) -> None:
    arguments = [write_query(recorded, text), "--source", "replay:prices.parquet", *options]
    outcome = CliRunner().invoke(run.command, arguments)
    assert isinstance(outcome.exception, SlackwaterError), outcome.output
    assert outcome.exception.condition == condition
    assert message in str(outcome.exception)


TOPIC = "kafka://127.0.0.1:1/clicks"


@pytest.mark.parametrize(
    ("source", "options", "condition", "message"),
    [
        (
            "kafka:clicks",
            (),
            "wrong-address",
            "--source kafka:clicks: nothing is not HOST:PORT of a broker; write",
        ),
        ("kafka://host/clicks", (), "wrong-address", "host is not HOST:PORT of a broker"),
        ("kafka://host:9092", (), "wrong-address", "nothing is not the name of a topic"),
        (f"{TOPIC}?schema", (), "wrong-address", "bad query field: 'schema'"),
        (f"{TOPIC}?format=csv&format=json", (), "wrong-address", "format is given twice"),
        (
            f"{TOPIC}?maxOffsetPerTrigger=9",
            (),
            "unknown-parameter",
            "unknown parameter maxOffsetPerTrigger; use",
        ),
        (f"{TOPIC}?kafka.bootstrap.servers=a:1", (), "unknown-parameter", "unknown parameter kafka.bootstrap.servers"),
        (f"{TOPIC}?format=avro", (), "unknown-format", "unknown format=avro; use json or csv"),
        (TOPIC, (), "no-schema", "add --schema 'ts TIMESTAMP'"),
        (f"{TOPIC}?schema=ts TIMESTAMP", ("--schema", "ts DATE"), "schema-twice", "schema= and --schema differ"),
        (f"{TOPIC}?schema=Key INT", (), "column-twice", "the schema has a column Key, and every message has one; add"),
        (f"{TOPIC}?schema=ts TIMESTAMP&prefix=k_", (), "no-broker", "no connection to 127.0.0.1:1 ("),
        ("generator:1", ("--sink", f"{TOPIC},views"), "wrong-address", "results go to one topic; name one"),
        (
            "generator:1",
            ("--sink", f"{TOPIC}?startingOffsets=latest"),
            "unknown-parameter",
            "unknown parameter start",
        ),
        ("generator:1", ("--sink", TOPIC), "no-broker", "--sink: no connection to 127.0.0.1:1"),
        ("generator:1", ("--package", "kafka"), "wrong-package", "--package kafka is neither a jar file nor Maven"),
        ("generator:1", ("--package", "connector.jar"), "no-such-file", "--package connector.jar is not a file"),
    ],
)
def test_run_reports_wrong_kafka_addresses_before_spark_starts(
    tmp_path: Path, source: str, options: tuple[str, ...], condition: str, message: str
) -> None:
    arguments = [write_query(tmp_path, GOOD), "--source", source, *options]
    outcome = CliRunner().invoke(run.command, arguments)
    assert isinstance(outcome.exception, SlackwaterError), outcome.output
    assert (outcome.exception.condition, message in str(outcome.exception)) == (condition, True), outcome.exception


def test_an_address_in_an_error_shows_no_password(tmp_path: Path) -> None:
    arguments = [write_query(tmp_path, GOOD), "--source", f"{TOPIC}?kafka.sasl.jaas.config=secret&schema=ts TIMESTAMP"]
    assert "secret" not in str(CliRunner().invoke(run.command, arguments).exception)


def test_run_points_at_the_ambiguous_table(recorded: Path) -> None:
    outcome = CliRunner().invoke(run.command, [write_query(recorded, STANDING), "--source", "replay:prices.parquet"])
    line, carets = str(outcome.exception).splitlines()[-2:]
    assert line[carets.index("^") :][: carets.count("^")] == "Holdings"


@pytest.mark.parametrize(
    ("options", "condition", "message"),
    [
        (("--event-time", "tss"), "no-such-column", "unknown column 'tss' (did you mean ts?)"),
        (("--source", "symbols"), "no-such-column", "unknown column 'symbols' (did you mean symbol?)"),
        (("--plot", "plot.txt"), "unknown-format", "--plot plot.txt does not end in .png,"),
        (("--plot", "plot"), "unknown-format", "write plot.png"),
        (("--plot", "nowhere/plot.png"), "not-writable", "there is no folder nowhere"),
    ],
)
def test_advise_reports_bad_input_before_spark_starts(
    recorded: Path, options: tuple[str, ...], condition: str, message: str
) -> None:
    arguments = ["prices.parquet", "--event-time", "TS", "--arrival", "ts", *options]
    outcome = CliRunner().invoke(advise.command, arguments)
    assert isinstance(outcome.exception, SlackwaterError), outcome.output
    assert (outcome.exception.condition, message in str(outcome.exception)) == (condition, True), outcome.exception
