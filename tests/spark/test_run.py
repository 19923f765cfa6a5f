"""``slackwater run`` and ``slackwater reconcile`` as a user runs them, with every source and sink."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.cli import reconcile, run
from slackwater.errors import (
    InvalidData,
    InvalidOption,
    PromiseConflict,
    QueryFailed,
    QueryTextError,
    SlackwaterError,
)
from slackwater.files import claimed, is_unused
from slackwater.language import parse
from slackwater.spark.command import session
from slackwater.spark.command.replay_source import ReplaySource
from slackwater.spark.command.run_spec import RunSpec
from slackwater.spark.command.sinks import parse_sink
from tests.helpers.harness import SCHEMA, FileStream, batches, values
from tests.helpers.standing import SCHEMA as PRICES
from tests.helpers.standing import micro_batches, put_weights, truth

pytestmark = pytest.mark.spark
SELECT = "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors"
QUERY = SELECT + " [RANGE 2 seconds SLIDE 1 second {}] GROUP BY sensor"
PROMISED = QUERY.format("WATTR ts ARRIVAL arrived SLACK 100 ms LATE PANES")
JOINED = PROMISED.replace("] GROUP", "] JOIN Places USING (sensor) GROUP")
WORTH = "SELECT portfolio, SUM(weight * price) AS worth FROM Prices JOIN Holdings USING (symbol) GROUP BY portfolio"


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the commands use the session of the tests."""

    @contextmanager
    def same(*_: str, **__: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "local_session", same)


def invoke(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def put(folder: Path, text: str) -> Path:
    path = folder / "query.sql"
    path.write_text(text, encoding="utf-8")
    return path


def cut_small(seed: int) -> list[list[dict[str, Any]]]:
    """Ten micro-batches of four seconds. They run back to back: how many rows are late depends on the machine."""
    made = [row for batch in batches(seed) for row in batch]
    return [made[i : i + 24] for i in range(0, len(made), 24)]


def exact(source: FileStream, closed: str) -> list[Any]:
    """The windows that end by ``closed``, as a batch job computes them."""
    rows = source.read_batch().groupBy(F.window("ts", "2 seconds", "1 second").alias("w"), "sensor")
    counted = rows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    named = counted.selectExpr("w.start AS window_start", "w.end AS window_end", "sensor", "n", "total")
    return values(named.where(F.col("window_end") <= F.to_timestamp(F.lit(closed))))


@pytest.mark.usefixtures("shared_session")
def test_files_to_parquet_and_reconciled(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in cut_small(7):
        source.put(batch)
    options = (
        "--source",
        f"json:{source.folder}",
        "--schema",
        SCHEMA,
        "--json",
        "--sink",
        f"parquet:{tmp_path / 'out'}",
    )
    done = invoke(run.command, put(tmp_path, PROMISED), *options)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout.splitlines()[-1])
    ledger = report["ledger"]
    assert ledger["input"] == 240 == ledger["on_time"] + ledger["late"]
    assert "native: Spark aggregates panes of 1 second" in done.stderr

    merged = invoke(reconcile.command, tmp_path / "out", "--out", tmp_path / "exact")
    assert merged.exit_code == 0, merged.output
    heartbeat = report["completeness"][0]["heartbeat"]
    found = spark.read.parquet(str(tmp_path / "exact"))
    closed = found.where(F.col("window_end") <= F.to_timestamp(F.lit(heartbeat)))
    assert values(closed) == exact(source, heartbeat) and closed.count() > 10
    lines = invoke(reconcile.command, tmp_path / "out", "--json").stdout.splitlines()
    assert len(lines) == found.count()
    assert set(json.loads(lines[0])) == {"window_start", "window_end", "sensor", "n", "total"}
    again = invoke(run.command, tmp_path / "query.sql", *options)
    assert isinstance(again.exception, InvalidOption) and again.exception.condition == "sink-in-use"


@pytest.mark.usefixtures("shared_session")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_of_other_files(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    source, folder = FileStream(spark, tmp_path / "made"), tmp_path / "in"
    for batch in batches(4, count=2):
        source.put(batch)
    folder.mkdir()
    for file in sorted(source.folder.iterdir()):
        rows = pd.read_json(file, lines=True, convert_dates=False)
        if kind == "csv":
            rows.to_csv(folder / f"{file.stem}.csv", index=False, header=False)
        else:
            rows = rows.assign(
                **{column: pd.to_datetime(rows[column], format="ISO8601") for column in ("ts", "arrived")}
            )
            rows.to_parquet(folder / f"{file.stem}.parquet", index=False, coerce_timestamps="us")
    query = put(tmp_path, QUERY.format("WATTR ts ARRIVAL arrived SLACK 100 ms LATE PANES"))
    schema = () if kind == "parquet" else ("--schema", SCHEMA)
    sink = ("--sink", f"parquet:{tmp_path / 'out'}", "--json")
    done = invoke(run.command, query, "--source", f"{kind}:{folder}", *schema, *sink)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["ledger"]["input"] == 120 == report["ledger"]["on_time"] + report["ledger"]["late"]
    heartbeat = report["completeness"][0]["heartbeat"]
    found = sw.reconcile(spark.read.parquet(str(tmp_path / "out")))
    assert values(found.where(F.col("window_end") <= F.to_timestamp(F.lit(heartbeat)))) == exact(source, heartbeat)


@pytest.mark.usefixtures("shared_session")
def test_a_stream_that_ends_has_no_open_windows(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in cut_small(11)[:4]:
        source.put(batch)
    query = put(tmp_path, PROMISED.replace("SLACK 100 ms", "DRATIO 20%"))
    options = ("--source", f"json:{source.folder}", "--schema", SCHEMA, "--json")
    closed = invoke(run.command, query, *options, "--sink", f"parquet:{tmp_path / 'closed'}")
    report = json.loads(closed.stdout.splitlines()[-1])
    promise = report["completeness"][0]
    assert (closed.exit_code, report["verdict"]) == (0, "kept"), closed.output
    assert promise["open"] == {"rows": 0, "windows": None, "stream_ended": True}
    merged = sw.reconcile(spark.read.parquet(str(tmp_path / "closed")))
    everything = exact(source, "2100-01-01")
    assert values(merged) == everything
    assert promise["results"] >= len(everything) > 20

    left_open = invoke(run.command, query, *options, "--sink", f"parquet:{tmp_path / 'open'}", "--no-flush")
    unclosed = json.loads(left_open.stdout.splitlines()[-1])
    assert unclosed["ledger"]["input"] == report["ledger"]["input"] == 96
    (promise,) = unclosed["completeness"]
    assert promise["results"] < len(everything) and promise["open"]["rows"] > 0 and promise["open"]["windows"] > 0


@pytest.mark.usefixtures("shared_session")
def test_nothing_is_kept_while_nothing_is_published(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    source.put(batches(9, count=1)[0])
    query = put(tmp_path, QUERY.format("WATTR ts ARRIVAL arrived DRATIO 1%"))
    done = invoke(run.command, query, "--source", f"json:{source.folder}", "--schema", SCHEMA, "--no-flush")
    assert done.exit_code == 1
    assert "(nothing published yet)" in done.stderr
    assert "published   0 results" in done.stderr and "still open  60 rows in" in done.stderr


def recorded(source: FileStream, to: Path) -> Path:
    """The rows of a stream as a Parquet file."""
    source.read_batch().toPandas().to_parquet(to, coerce_timestamps="us", allow_truncated_timestamps=True)
    return to


@pytest.mark.usefixtures("shared_session")
def test_a_replay_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in cut_small(12)[:4]:
        source.put(batch)
    file, query = recorded(source, tmp_path / "recorded.parquet"), put(tmp_path, PROMISED)
    folders = ("--sink", f"parquet:{tmp_path / 'out'}", "--checkpoint", tmp_path / "checkpoint")

    def stopped_after_the_first_part() -> None:
        """The parts after the first one are due in some days."""
        replay = ReplaySource.parse(f"{file}?every=4s&speed=0.00001x", None)
        spec = RunSpec(
            parse(PROMISED), "Sensors", replay, parse_sink(f"parquet:{tmp_path / 'out'}"), checkpoint=Path(folders[3])
        )
        (tmp_path / "checkpoint" / "replay" / "rows").mkdir(parents=True)
        made = replay.replay(spark, "arrived", tmp_path / "checkpoint" / "replay")
        made._write(tmp_path / "checkpoint" / "replay" / "rows" / "00000.parquet", 0, made._cuts.ends[0], 0)
        started = spec.start(spark, tmp_path, print)
        started.query.processAllAvailable()
        assert started.replay is not None and not started.replay.wait(0)
        started.replay.stop()
        started.query.stop()

    stopped_after_the_first_part()
    every = (run.command, query, "--source", f"replay:{file}?every=4s", *folders, "--json")
    done = invoke(*every)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["ledger"]["input"], report["ledger"]["exact"]) == (96, True)
    assert values(sw.reconcile(spark.read.parquet(str(tmp_path / "out")))) == exact(source, "2100-01-01")
    again = json.loads(invoke(*every).stdout.splitlines()[-1])
    assert again["ledger"] == report["ledger"], "everything was read"

    other = put(tmp_path, PROMISED.replace("SLIDE 1 second", "SLIDE 2 seconds"))
    refused = invoke(run.command, other, *every[2:])
    assert isinstance(refused.exception, PromiseConflict) and refused.exception.condition == "other-query"
    cut_otherwise = invoke(run.command, query, "--source", f"replay:{file}", *folders)
    assert isinstance(cut_otherwise.exception, PromiseConflict)
    assert cut_otherwise.exception.condition == "other-replay"


@pytest.mark.usefixtures("shared_session")
def test_compressed_files_patterns_and_empty_files(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "made")
    for batch in batches(9, count=2):
        source.put(batch)
    for day, file in enumerate(sorted(source.folder.iterdir())):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "rows.json.gz").write_bytes(gzip.compress(file.read_bytes()))
    (tmp_path / "in" / "day=0" / "empty.json").touch()
    query = put(tmp_path, PROMISED)
    everything = exact(source, "2100-01-01")
    for number, where in enumerate(
        (f"json:{tmp_path}/in/*", f"replay:{tmp_path}/in/*/*.gz", f"replay:{source.folder}")
    ):
        out = tmp_path / f"out{number}"
        done = invoke(run.command, query, "--source", where, "--schema", SCHEMA, "--sink", f"parquet:{out}", "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout.splitlines()[-1])["ledger"]["input"] == 120
        assert values(sw.reconcile(spark.read.parquet(str(out)))) == everything


@pytest.mark.usefixtures("shared_session")
def test_an_empty_folder_publishes_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = ("--source", f"json:{tmp_path / 'in'}", "--schema", SCHEMA)
    done = invoke(run.command, put(tmp_path, PROMISED), *options, "--seconds", "1")
    assert (done.exit_code, done.stdout) == (1, ""), done.stderr
    assert "nothing published yet" in done.stderr
    refused = invoke(run.command, put(tmp_path, PROMISED), *options)  # nothing will come
    assert "[no-such-file]" in str(refused.exception) and "--seconds" in str(refused.exception)


@pytest.mark.full
@pytest.mark.usefixtures("shared_session")
def test_replay_to_json_with_late_rows_apart(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in cut_small(8):
        source.put(batch)
    file = recorded(source, tmp_path / "recorded.parquet")
    done = invoke(
        run.command,
        put(tmp_path, PROMISED.replace("LATE PANES", "LATE ROWS")),
        *("--source", f"replay:{file}", "--batches", 10, "--json"),
        *("--sink", f"json:{tmp_path / 'out'}", "--late-sink", f"parquet:{tmp_path / 'late'}"),
    )
    assert done.exit_code == 0, done.output
    heartbeat = json.loads(done.stdout.splitlines()[-1])["completeness"][0]["heartbeat"]
    schema = "window_start timestamp, window_end timestamp, sensor string, n long, total double"
    published = spark.read.schema(schema).json(str(tmp_path / "out"))
    late = spark.read.parquet(str(tmp_path / "late"))
    assert late.where("late_by_ms <= 0 OR size(missed) = 0").isEmpty()
    missed = late.selectExpr("explode(missed) AS w", "sensor", "value").groupBy("w", "sensor")
    lost = missed.agg(F.count("*").alias("n"), F.sum("value").alias("total")).selectExpr("w.*", "sensor", "n", "total")
    both = published.select(*lost.columns).union(lost).groupBy("window_start", "window_end", "sensor")
    assert values(both.agg(F.sum("n").alias("n"), F.sum("total").alias("total"))) == exact(source, heartbeat)


@pytest.mark.usefixtures("shared_session")
def test_the_console_gets_results(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in batches(9, count=3):
        source.put(batch)
    query = put(tmp_path, QUERY.format("WATTR ts ARRIVAL arrived SLACK 100 ms"))
    options = ("--source", f"json:{source.folder}", "--schema", SCHEMA)
    table = invoke(run.command, query, *options)
    assert table.stdout.splitlines()[0].split() == ["window_start", "window_end", "sensor", "n", "total"]
    assert "ledger      180 rows" in table.stderr
    *results, report = invoke(run.command, query, *options, "--json").stdout.splitlines()
    assert {tuple(json.loads(line)) for line in results} == {("window_start", "window_end", "sensor", "n", "total")}
    assert json.loads(report)["ledger"]["input"] == 180


@pytest.mark.usefixtures("shared_session")
def test_a_static_table_is_joined_with_the_types_that_it_is_given(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in batches(9, count=3):
        source.put(batch)
    (tmp_path / "places.csv").write_text("sensor,place\ns0,007\ns1,007\ns2,08\n")
    query = put(tmp_path, JOINED.replace("SELECT sensor", "SELECT place").replace("BY sensor", "BY place"))
    done = invoke(
        *(run.command, query, "--source", f"json:{source.folder}", "--schema", SCHEMA, "--json"),
        *("--table", f"Places(sensor STRING, place STRING)=csv:{tmp_path / 'places.csv'}"),
        *("--sink", f"parquet:{tmp_path / 'out'}"),
    )
    assert done.exit_code == 0, done.output
    heartbeat = json.loads(done.stdout.splitlines()[-1])["completeness"][0]["heartbeat"]
    rows = source.read_batch().where("sensor < 's3'").withColumn("place", F.expr("if(sensor = 's2', '08', '007')"))
    windows = rows.groupBy(F.window("ts", "2 seconds", "1 second").alias("w"), "place")
    counted = windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    closed = counted.selectExpr("w.start AS window_start", "w.end AS window_end", "place", "n", "total")
    found = sw.reconcile(spark.read.parquet(str(tmp_path / "out")))
    ended = F.col("window_end") <= F.to_timestamp(F.lit(heartbeat))
    assert values(found.where(ended)) == values(closed.where(ended)) and found.where(ended).count() > 4


@pytest.mark.full
@pytest.mark.usefixtures("shared_session")
def test_a_standing_query_to_the_end_of_its_rows_and_on_from_there(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    ticks = micro_batches(26, warm_up=20)
    source = FileStream(spark, tmp_path / "in", PRICES)
    query = put(tmp_path, f"{WORTH} WITHIN 5 CONFIDENCE 90%")
    command = (
        *(run.command, query, "--source", f"json:{source.folder}", "--schema", PRICES, "--json"),
        *("--table", f"Holdings=parquet:{tmp_path / 'weights'}", "--value", "price"),
        *("--sink", f"parquet:{tmp_path / 'out'}", "--checkpoint", tmp_path / "checkpoint"),
    )
    for part in (ticks[:4], ticks[4:]):
        for tick in part:
            source.put(tick)
        done = invoke(*command)
        assert done.exit_code == 0, done.output
    assert "weights     Holdings, by symbol: 1.0D * (weight)" in done.stderr
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("*", "unix_millis(at) AS ms").collect()
    exact = truth(tmp_path, ticks)
    assert {row.portfolio for row in found} == {f"p{number}" for number in range(6)}
    for row in found:  # this also fails if an answer has a time at which no row came
        assert row.worth == pytest.approx(exact[row.portfolio, row.ms], rel=1e-12)
        assert row.interrupted_streams == 0
    (promise,) = json.loads(done.stdout.splitlines()[-1])["precision"]
    assert promise["evaluated"] == len(found) < len(ticks) * 6 == promise["evaluated"] + promise["deferred"]

    shuffled = pd.DataFrame([row for tick in ticks for row in tick]).sample(frac=1, random_state=1)
    shuffled["ts"] = pd.to_datetime(shuffled["ts"], format="ISO8601").dt.tz_localize(None)
    shuffled.to_parquet(tmp_path / "prices.parquet", coerce_timestamps="us")
    text = "SELECT AVG(price) AS mean FROM Prices WITHIN 2 CONFIDENCE 95%"
    options = ("--source", f"replay:{tmp_path / 'prices.parquet'}", "--batches", 26, "--key", "symbol", "--json")
    *lines, _ = invoke(run.command, put(tmp_path, text), *options).stdout.splitlines()
    means = shuffled.groupby("ts")["price"].mean()
    answers = {pd.Timestamp(line["at"]): line["mean"] for line in map(json.loads, lines)}
    assert 1 < len(answers) < 26
    assert answers == {at: pytest.approx(means[at.tz_localize(None)], rel=1e-12) for at in answers}


def test_what_is_wrong_is_named_without_spark(tmp_path: Path) -> None:
    """A session that cannot start stands for Spark; pyspark is not even imported."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "broken.parquet").write_text("no Parquet")
    query, taken = put(tmp_path, PROMISED), tmp_path / "taken"
    row = {"ts": pd.to_datetime(["2026-01-01"]), "arrived": 1, "sensor": "a", "value": 1.0}
    pd.DataFrame(row).to_parquet(tmp_path / "r.parquet")
    for options, condition in (
        (("--source", f"parquet:{folder}"), "not-parquet"),
        (("--source", f"replay:{folder}"), "not-parquet"),
        (("--source", f"parquet:{taken}"), "no-such-folder"),
        (("--source", f"replay:{tmp_path / 'r.parquet'}", "--sink", "parquet:/proc/out"), "not-writable"),
        (("--source", f"replay:{tmp_path / 'r.parquet'}", "--event-time", "nothing"), "no-such-column"),
        (("--source", f"replay:{tmp_path / 'r.parquet'}"), "wrong-arrival"),
    ):
        code = f"""
import sys
from click.testing import CliRunner
from slackwater.cli import run
done = CliRunner().invoke(run.command, {[str(query), *map(str, options)]!r})
print(getattr(done.exception, "condition", done.output), "pyspark" in sys.modules)
"""
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert ended.stdout.split() == [condition, "False"], options


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with claimed(tmp_path / "out", "--sink"):
        assert is_unused(tmp_path / "out")
        done = invoke(
            *(run.command, put(tmp_path, PROMISED), "--source", f"json:{tmp_path / 'in'}", "--schema", SCHEMA),
            *("--sink", f"parquet:{tmp_path / 'out'}", "--seconds", "60"),
        )
    assert isinstance(done.exception, InvalidOption) and done.exception.condition == "folder-in-use"
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.usefixtures("shared_session")
@pytest.mark.parametrize(
    ("text", "options", "kind", "condition"),
    [
        (PROMISED.replace("SUM(value)", "SUM(nothing)"), (), QueryTextError, "unknown-column"),
        (PROMISED.replace("WATTR ts", "WATTR tss"), (), QueryTextError, "unknown-column"),
        (PROMISED.replace("SUM(value)", "SUM(CAST(sensor AS INT))"), (), QueryFailed, "query-failed"),
        (QUERY.format("WATTR ts"), ("--late-sink", "json:late"), InvalidOption, "nothing-late"),
        (JOINED.replace("Places", "Nowhere"), (), QueryTextError, "unknown-table"),
        (JOINED, ("--table", f"Places=parquet:{__file__}"), InvalidData, "not-parquet"),
        (PROMISED, ("--sink", "delta:out"), InvalidOption, "unknown-sink"),
        (PROMISED, ("--sink", "kafka:topic"), InvalidOption, "wrong-address"),
        (PROMISED, ("--source", "json:nowhere"), InvalidData, "no-such-folder"),
        (PROMISED, ("--source", "replay:nowhere"), InvalidData, "no-such-file"),
        (PROMISED, ("--source", "generator:fast"), InvalidOption, "invalid-rate"),
        (PROMISED, ("--source", f"json:{__file__}"), InvalidData, "no-such-folder"),
        (PROMISED, ("--source", "json:nowhere/*"), InvalidData, "no-such-folder"),
        (PROMISED, ("--sink", "parquet:/proc/out"), InvalidOption, "not-writable"),
        (PROMISED, ("--late-sink", "json:/proc/late"), InvalidOption, "not-writable"),
        (PROMISED, ("--checkpoint", f"{__file__}/checkpoint"), InvalidOption, "not-writable"),
        (PROMISED, ("--seconds", "1", "--flush"), InvalidOption, "stopped-before-the-end"),
        (PROMISED, ("--batches", "5"), InvalidOption, "option-not-used"),
    ],
)
def test_bad_input_is_refused_by_condition(
    spark: SparkSession, tmp_path: Path, text: str, options: tuple[str, ...], kind: type, condition: str
) -> None:
    source = FileStream(spark, tmp_path / "in")
    source.put(batches(9, count=1)[0])
    given = ("--source", f"json:{source.folder}", "--schema", SCHEMA, *options)
    done = invoke(run.command, put(tmp_path, text), *given)
    assert isinstance(done.exception, SlackwaterError) and isinstance(done.exception, kind), done.output
    assert done.exception.condition == condition


@pytest.mark.full
def test_the_generator_until_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C reaches every process in the foreground; the command still ends with a report."""
    query = put(tmp_path, QUERY.format("ARRIVAL arrived SLACK 100 ms"))
    command = [sys.executable, "-m", "slackwater.cli.main", "run", str(query), "--source", "generator:200", "--json"]
    process = subprocess.Popen(
        [*command, "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "MASTER": "local[2]"},
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())  # a window was published
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    report = json.loads(out.splitlines()[-1])
    assert first["n"] > 0
    assert (process.returncode, report["interrupted"]) == (0, True)
    assert report["ledger"]["input"] > 0
    assert "Traceback" not in errors
