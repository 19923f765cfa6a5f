"""The command as a whole: help, completion, exit codes and error output."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from slackwater.cli import main as cli
from slackwater.cli.lazy import LazyGroup
from slackwater.errors import InvalidOption


def verbs(group: click.Group = cli.command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from verbs(found, (*path, name))
        else:
            yield " ".join((*path, name)), found


def test_the_help_lists_every_verb_in_order() -> None:
    listed = {verb for verbs_ in cli.SECTIONS.values() for verb in verbs_} | {"completion"}
    assert listed == set(cli.VERBS)
    assert isinstance(cli.command, LazyGroup)
    help_text = CliRunner().invoke(cli.command, ["--help"]).output
    positions = [help_text.index(f"\n  {verb} ") for verb in cli.VERBS]
    assert positions == sorted(positions)


@pytest.mark.parametrize(("name", "verb"), list(verbs()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_verb_has_examples_and_json(name: str, verb: click.Command) -> None:
    assert verb.help is not None and "Examples:" in verb.help
    assert f"slackwater {name}" in verb.help
    assert any("--json" in parameter.opts for parameter in verb.params)
    for parameter in verb.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help or isinstance(parameter.type, click.Choice) or parameter.show_default, parameter.opts


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slackwater.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_bad_input_exits_with_2_and_no_traceback(tmp_path: Path) -> None:
    query = tmp_path / "bad.sql"
    query.write_text("SELECT MAX(v) FROM s [RANGE 5 parsecs]")
    for arguments in (["check", "nowhere.sql"], ["nosuch"], ["explain", str(query)], ["watch", "nowhere"]):
        ended = run(*arguments)
        assert ended.returncode == 2, arguments
        assert ended.stderr and "Traceback" not in ended.stderr


def test_debug_prints_the_traceback(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("ts,seen\n1,2\n")
    wrong = ["lab", "disorder", str(trace), "--event-time", "ts", "--drop-ratio", "200%"]
    assert "Traceback" not in run(*wrong).stderr
    ended = run("--debug", *wrong)
    assert "Traceback" in ended.stderr and "InvalidOption" in ended.stderr


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (InvalidOption("c", "p", "r"), 2),
        (click.UsageError("u"), 2),
        (click.ClickException("failed"), 1),
        (KeyError("k"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(raised: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._print_error(raised) == code
    assert capsys.readouterr().err


def test_completion_lists_verbs_without_loading_them() -> None:
    words = {"COMP_WORDS": "slackwater w", "COMP_CWORD": "1", "_SLACKWATER_COMPLETE": "bash_complete"}
    code = (
        "import sys; from slackwater.cli.main import command\n"
        "try: command.main(prog_name='slackwater')\n"
        "finally: print('pyspark' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **words}, check=False
    )
    assert ended.stdout.split() == ["plain,watch", "False"]
    for shell in ("bash", "zsh", "fish"):
        assert "_SLACKWATER_COMPLETE" in CliRunner().invoke(cli.command, ["completion", shell]).output


def test_watch_once_prints_the_state_of_each_promise(tmp_path: Path) -> None:
    from tests.helpers.series import ratio_writer

    ratio_writer(tmp_path, batches=4)
    result = CliRunner().invoke(cli.command, ["watch", str(tmp_path), "--once", "--json"])
    assert result.exit_code == 0
    (promise,) = json.loads(result.output)
    assert promise["kept"] is True and promise["ledger"]["late"] == 20
    assert "KEPT" in CliRunner().invoke(cli.command, ["watch", str(tmp_path), "--once"]).output


def test_watch_once_ends_with_1_while_nothing_is_published(tmp_path: Path) -> None:
    from tests.helpers.series import ratio_point, ratio_writer

    ratio_writer(tmp_path).add(dataclasses.replace(ratio_point(0), results=0))
    result = CliRunner().invoke(cli.command, ["watch", str(tmp_path), "--once", "--json"])
    (promise,) = json.loads(result.output)
    assert (result.exit_code, promise["kept"], promise["verdict"]) == (1, None, "nothing published yet")
