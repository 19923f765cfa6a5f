"""The whole public surface in a session of Spark Connect, and what a managed service leaves of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import REPOSITORY, environment
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.full]
USAGES = (
    "with_drop_ratio",
    "sql_and_stream_and_reconcile",
    "late_rows_and_on_time",
    "window",
    "ordered",
    "with_max_delay_and_retarget_and_estimates",
    "standing",
    "standing_in_sql",
    "scheduled_runs",
    "watch_and_serve_metrics",
    "what_the_server_does_not_see",
    "a_second_query",
    "filter_costs",
    "a_batch_used_twice",
    "the_programs_of_the_readme",
)


SCHEDULED = ("windows_under_a_promise", "late_panes", "ordered_rows", "with_max_delay", "standing")


def run_usages(module: str, folder: Path) -> dict[str, str | None]:
    """What went wrong in each usage; None: nothing."""
    command = [sys.executable, "-m", f"tests.helpers.{module}", str(folder)]
    ran = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"usage"')]
    assert lines, ran.stderr
    return {line["usage"]: line["wrong"] for line in lines}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    return run_usages("connect_usages", tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    return run_usages("scheduled_usages", tmp_path_factory.mktemp("scheduled"))


@pytest.mark.parametrize("name", USAGES)
@usage("Spark Connect: every public name", "works, or is refused by name with the reason")
def test_it_works_or_is_refused(name: str, found: dict[str, str | None]) -> None:
    assert found[name] is None, found[name]


def test_every_usage_is_listed(found: dict[str, str | None]) -> None:
    assert tuple(found) == USAGES


@pytest.mark.parametrize("name", SCHEDULED)
@usage(
    "a managed service of Spark Connect: no jars, no `sparkContext`, no settings, `AvailableNow` only",
    "right: promises, late panes, ordered rows, shedding and standing queries go on from run to run",
)
def test_it_works_without_jars_context_settings_and_other_triggers(name: str, scheduled: dict[str, str | None]) -> None:
    assert scheduled[name] is None, scheduled[name]


def test_every_scheduled_usage_is_listed(scheduled: dict[str, str | None]) -> None:
    assert tuple(scheduled) == SCHEDULED
