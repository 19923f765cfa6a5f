"""``slackwater retarget`` writes a valid target into the right folder, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from slackwater.cli.main import command
from slackwater.errors import SlackwaterError
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.mailbox import ABOUT, Mailbox


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["retarget", *arguments], standalone_mode=False)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    for name in ("clicks-delay", "prices-delay"):
        Mailbox(tmp_path / "_slackwater" / name).storage.write(ABOUT, "{}")
    Mailbox(tmp_path / "_slackwater" / "clicks").control.write("epoch", ControlLine())
    return tmp_path


def target(location: Path, name: str) -> str | None:
    return Mailbox(location / "_slackwater" / name).read_target()


def test_the_target_of_one_promise_is_changed_and_reset(location: Path) -> None:
    done = run(str(location), "5 seconds", "--promise", "clicks-delay", "--json")
    assert done.exception is None
    assert json.loads(done.stdout) == {"promise": "clicks-delay", "promised_delay_s": 5.0}
    assert (target(location, "clicks-delay"), target(location, "prices-delay")) == ("5.0 seconds", None)
    folder = str(location / "_slackwater" / "clicks-delay")
    assert "DELAY 250 ms" in run(folder, "250 ms").stdout
    assert target(location, "clicks-delay") == "0.25 seconds"
    assert run(folder, "--reset").exception is None
    assert target(location, "clicks-delay") is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("soon", "--promise", "clicks-delay"), "[invalid-duration]"),
        (("0 seconds", "--promise", "clicks-delay"), "[no-delay-at-all]"),
        (("5 seconds",), "[several-promises]"),
        (("5 seconds", "--promise", "clicks"), "[no-promise]"),
        (("5 seconds", "--reset"), "either DELAY or --reset"),
        ((), "either DELAY or --reset"),
    ],
)
def test_bad_input_changes_nothing(location: Path, arguments: tuple[str, ...], says: str) -> None:
    refused = run(str(location), *arguments)
    assert isinstance(refused.exception, SlackwaterError | click.UsageError) and says in str(refused.exception)
    assert not list(location.rglob("target.txt"))


def test_a_location_elsewhere_is_refused_with_what_to_do() -> None:
    for verb in ("retarget", "watch"):
        refused = CliRunner().invoke(command, [verb, "s3a://bucket/checkpoints", "5 seconds"])
        assert refused.exit_code == 2
        assert "s3a://bucket/checkpoints is not on this machine" in " ".join(refused.output.split())
