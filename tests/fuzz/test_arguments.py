"""Any arguments of the command are right, or refused with exit code 2: no crash, no hang, no file outside the folder.

The verbs run in this process, up to the point where they would start Spark.
"""

from __future__ import annotations

import os
import random
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

from slackwater.cli import main as cli
from slackwater.cli.lazy import LazyGroup
from slackwater.spark.command import session
from tests.cli.test_command import verbs

CALLS = min(int(os.environ.get("SLACKWATER_FUZZ", "150")), 20_000)
LEFT_OUT = ("demo", "reproduce", "completion")
"""They take no input of the user's but names of a list, and run for minutes."""

QUERIES = {
    "counts.sql": "SELECT COUNT(*) AS n FROM Readings [RANGE 5 seconds SLIDE 5 seconds WATTR ts DRATIO 1%]",
    "late.sql": "SELECT AVG(value) FROM Readings [RANGE 6 s SLIDE 2 s WATTR ts ARRIVAL arrived DRATIO 1% LATE PANES]",
    "delay.sql": "SELECT COUNT(*) FROM Readings [RANGE 5 seconds SLIDE 5 seconds WATTR ts DRATIO 1% DELAY 2 seconds]",
    "standing.sql": "SELECT sensor, AVG(value) FROM Readings GROUP BY sensor WITHIN 0.5 CONFIDENCE 95%",
    "broken.sql": "SELECT FROM [",
}
TEXTS = (
    *("", " ", "-", "--", "=", "é", "🦆", "'", '"', "a" * 5000, "../..", "/", ".", "/nowhere/x", "NaN", "-1"),
    *("0", "1", "1e999", "0x10", "1%", "200%", "5 seconds", "5 parsecs", "-5 s", "ts", "arrived", "sensor", "value"),
    *("ts,sensor", ",", "nosuch", "budgeted-quantile", "ctrl-batch", "normal", "baseline", "generator:1000"),
    *("generator:", "generator:x", "json:in", "parquet:in", "csv:in", "parquet:", "replay:readings.parquet", "orc:in"),
    *("replay:readings.parquet?every=0s", "replay:readings.parquet?speed=x&a=b", "replay:readings.csv", "replay:in/*"),
    *(
        "kafka://localhost:9092/t",
        "kafka://",
        "kafka:",
        "kafka://h:99999/t?schema=ts TIMESTAMP",
        "s3a://b/c",
        "file://in",
    ),
    *(
        "console",
        "parquet:out",
        "json:out",
        "json:readings.csv",
        "parquet:in",
        "ts TIMESTAMP, value DOUBLE",
        "ts STRUCT<",
    ),
    *(
        "T=csv:readings.csv",
        "T(ts TIMESTAMP)=csv:readings.csv",
        "=:",
        "T=",
        "ts STRUCT<",
        "T(=csv:x",
        "in",
        "out",
        "new.parquet",
    ),
    *("readings.parquet", "readings.csv", "cut.parquet", "empty.csv", "counts.sql", "late.sql", "delay.sql"),
    *("standing.sql", "broken.sql", "a:b:c", "org:x:1.0", "%", "{}", "[]", "null", "2024-01-01", "65536", "100"),
)
_BUG = "This is a bug in Slackwater"


class SparkStarts(click.Abort):
    """The arguments were right: the verb would start Spark now."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs of every kind, as the working folder."""
    inside = tmp_path / "a" / "b"  # so that ../.. is ours too
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    for name, text in QUERIES.items():
        (inside / name).write_text(text)
    assert call(["generate", "readings.parquet", "--rows", "60", "--wrong-clocks", "3"])[0] == 0
    (inside / "in").mkdir()
    whole = (inside / "readings.parquet").read_bytes()
    (inside / "in" / "1.parquet").write_bytes(whole)
    (inside / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (inside / "readings.csv").write_text("ts,arrived,sensor,value\n2024-01-01T00:00:00Z,2024-01-01T00:00:01Z,1,2.0\n")
    (inside / "empty.csv").touch()

    def no_session(*_: Any, **__: Any) -> None:
        raise SparkStarts

    monkeypatch.setattr(session, "local_session", no_session)
    return tmp_path


def call(arguments: list[str]) -> tuple[int, str]:
    """Exit code and all output of the command, as ``slackwater`` would end; -1 if it would start Spark."""
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            code = cli.command.main(arguments, standalone_mode=False) or 0
        except SparkStarts:
            code = -1
        except Exception as error:
            code = cli._print_error(error)
    return int(code), output.getvalue()


def drawn(dice: random.Random, known: list[tuple[str, click.Command]]) -> list[str]:
    """A verb with some of its arguments and options, a few of them unknown."""
    name, verb = dice.choice(known)
    arguments = name.split()
    for parameter in verb.params:
        if isinstance(parameter, click.Argument):
            arguments += [_value(dice, parameter)] if dice.random() < 0.95 else []
        elif dice.random() < (0.9 if parameter.required else 0.15):
            option = dice.choice([*parameter.opts, *parameter.secondary_opts])
            arguments += [option] if getattr(parameter, "is_flag", False) else [option, _value(dice, parameter)]
    if dice.random() < 0.1:
        arguments.insert(dice.randrange(len(arguments) + 1), dice.choice((*TEXTS, "--no-such-option", "--help")))
    # A page would be served until it is stopped, and a recording of any length would be written.
    arguments += ["--once"] if name == "watch" else ["--rows", "50"] if name == "generate" else []
    return [argument for argument in arguments if argument not in ("--port", "--metrics-port")]


def _value(dice: random.Random, parameter: click.Parameter) -> str:
    likely = {
        "file": [*QUERIES],
        "source": ["parquet:in", "generator:10", "replay:readings.parquet", "ts", "sensor"],
        "data": ["readings.parquet", "readings.csv", "in", "cut.parquet"],
        "event_time": ["ts"],
        "arrival": ["arrived"],
        "drop_ratio": ["1%", "0.1%", "0"],
        "stream": ["readings.parquet", "readings.csv", "cut.parquet"],
    }
    if isinstance(parameter.type, click.Choice) and dice.random() < 0.8:
        return str(dice.choice(list(parameter.type.choices)))
    if parameter.name in likely and dice.random() < 0.7:
        return dice.choice(likely[parameter.name])
    return dice.choice(TEXTS)


def test_any_arguments_are_right_or_refused(folder: Path) -> None:
    assert isinstance(cli.command, LazyGroup)
    known = [(name, verb) for name, verb in verbs() if name.split()[0] not in LEFT_OUT]
    reached = 0
    for seed in range(CALLS):
        arguments = drawn(random.Random(seed), known)
        try:
            code, output = call(arguments)
        except BaseException as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{arguments}")
        assert code in (-1, 0, 1, 2) and _BUG not in output and "Traceback" not in output, (seed, arguments, output)
        assert code != 2 or output.strip(), (seed, arguments, "refused without a word")
        reached += code == -1
    assert reached or CALLS < 100, "some arguments must be right"
    assert {path.name for path in folder.iterdir()} == {"a"}, "nothing is written elsewhere"
