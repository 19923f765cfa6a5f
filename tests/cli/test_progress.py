"""Progress without a terminal, and Ctrl-C in verbs that print a table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from slackwater.cli import lab_disorder
from slackwater.cli import main as cli
from slackwater.cli.progress import INTERRUPTED, ProgressLines, Work, unless_interrupted
from slackwater.sim.compare import compare


def test_a_line_says_what_is_done_without_a_terminal() -> None:
    output = io.StringIO()
    work = Work(Console(file=output), "starting Spark …")
    assert isinstance(work.lines, ProgressLines)
    work.lines.print_line()
    work.say("1,234 rows")
    with work.pause():
        work.lines.print_line()
    assert [line.partition(" (")[0] for line in output.getvalue().splitlines()] == ["starting Spark …", "1,234 rows"]


def test_a_terminal_has_a_spinner_and_no_lines() -> None:
    output = io.StringIO()
    work = Work(Console(file=output, force_terminal=True), "starting")
    assert work.lines is None
    with work.shown(every_s=0.0), work.pause():
        work.say("going on")
    assert "going on" in output.getvalue()


def test_lines_end_with_the_work() -> None:
    output = io.StringIO()
    with Work(Console(file=output), "working").shown(every_s=1e-3) as work:
        while "working" not in output.getvalue():
            pass
    before = output.getvalue()
    assert work.lines is not None and before == output.getvalue()


def test_an_interrupted_verb_ends_with_130() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    @click.command()
    def verb() -> None:
        with unless_interrupted("the part so far"):
            stop()
        click.echo("a part")

    ended = CliRunner().invoke(verb)
    assert (ended.exit_code, ended.stdout) == (INTERRUPTED, "a part\n")
    assert "interrupted: the part so far" in ended.stderr


def test_ctrl_c_prints_the_cells_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def interrupted_at_the_second(trace: object, methods: list[str], *rest: object) -> object:
        if done:
            raise KeyboardInterrupt
        done.extend(methods)
        return compare(trace, methods, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(lab_disorder, "compare", interrupted_at_the_second)
    options = ["--generated", "kim2012-constant", "--methods", "max-delay,fixed-slack", "--drop-ratio", "1%", "--json"]
    ended = CliRunner().invoke(lab_disorder.command, options)
    assert ended.exit_code == INTERRUPTED
    assert [cell["method"] for cell in json.loads(ended.stdout)] == done == ["max-delay"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["advise", "{data}", "--event-time", "ts", "--arrival", "seen", "--plot", "/nowhere/x.png"],
        ["lab", "disorder", "{data}", "--event-time", "ts", "--plot", "/nowhere/x.png"],
        ["lab", "shedding", "{data}", "--target-delay", "2s", "--plot", "/nowhere/x.png"],
        ["reproduce", "kim2007", "--out", "/proc/x"],
        ["reconcile", "{data}", "--out", "/proc/x"],
    ],
    ids=lambda arguments: arguments[1] if arguments[0] == "lab" else arguments[0],
)
def test_output_is_tried_before_the_work_begins(arguments: list[str], tmp_path: Path) -> None:
    """The data cannot be read: had the work begun, the error would be another one."""
    data = tmp_path / "data.parquet"
    data.write_text("no Parquet")
    ended = CliRunner().invoke(cli.command, [argument.format(data=data) for argument in arguments])
    assert getattr(ended.exception, "condition", None) == "not-writable", ended.output
