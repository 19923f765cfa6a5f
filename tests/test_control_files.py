"""Which control line a query is judged by, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.errors import PromiseConflict
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile

NONE, ONE, TWO = ControlLine(), ControlLine.for_batch(1000), ControlLine.for_batch(2000)
HERE = "this-driver"


@pytest.fixture
def files(tmp_path: Path) -> ControlFiles:
    return ControlFiles(tmp_path / "promise")


def test_a_query_has_the_line_of_its_epoch(files: ControlFiles) -> None:
    files.write("a", ONE, HERE)
    files.write("b", TWO, HERE)
    files.claim("query-a", "a")
    files.claim("query-b", "b")
    assert [files.line_of(query, HERE) for query in ("query-a", "query-b")] == [ONE, TWO]


def test_a_new_query_has_no_heartbeat_beside_one_that_runs(files: ControlFiles) -> None:
    files.write("a", ONE, HERE)
    files.claim("query-a", "a")
    files.write("b", NONE, HERE)
    assert files.line_of("query-b", HERE) == NONE


def test_a_query_whose_files_are_lost_has_the_line_that_nobody_claims(files: ControlFiles) -> None:
    files.write("a", ONE, HERE)
    files.claim("query-a", "a")
    files.write("b", TWO, HERE)
    assert files.line_of("query-b", HERE) == TWO
    assert files.epoch_of("query-b") == "b"


def test_the_first_micro_batch_of_a_query_has_no_heartbeat(files: ControlFiles) -> None:
    files.write("a", ONE, HERE)
    assert files.line_of("query-b", HERE, first_batch=True) == NONE


def test_of_two_whose_files_are_lost_none_is_guessed(files: ControlFiles) -> None:
    files.write("a", ONE, HERE)
    files.write("b", TWO, HERE)
    with pytest.raises(PromiseConflict, match=r"\[promise-shared\] 2 queries start at once, .* has lost their files"):
        files.line_of("query-b", HERE)


def test_lines_beside_other_drivers_and_of_ended_readers_are_not_taken(files: ControlFiles) -> None:
    files.write("a", ONE, "another-driver")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    files.write("b", TWO, HERE)
    path = files.folder / "control-b.txt"
    path.write_text(path.read_text().replace(str(os.getpid()), str(ended.pid)))
    assert files.line_of("query-c", HERE) == NONE


def test_the_row_of_a_file_has_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.spark.worker.control_row_file._LONGEST_S", 0.0)
    first, second = ControlRowFile(tmp_path), ControlRowFile(tmp_path)
    first.write(ONE)
    second.restore(TWO)
    with pytest.raises(PromiseConflict, match=r"\[promise-shared\] another query is running under the promise in"):
        second.write(TWO)
    assert first.path.read_text() == ONE.text()
