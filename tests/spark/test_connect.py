"""The whole public surface in a session of Spark Connect."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.helpers.processes import REPOSITORY, environment

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
    "a_batch_used_twice",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What went wrong in each usage; None: nothing."""
    command = [sys.executable, "-m", "tests.helpers.connect_usages", str(tmp_path_factory.mktemp("connect"))]
    ran = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"usage"')]
    assert lines, ran.stderr
    return {line["usage"]: line["wrong"] for line in lines}


@pytest.mark.parametrize("name", USAGES)
def test_it_works_or_is_refused(name: str, found: dict[str, str | None]) -> None:
    assert found[name] is None, found[name]


def test_every_usage_is_listed(found: dict[str, str | None]) -> None:
    assert tuple(found) == USAGES
