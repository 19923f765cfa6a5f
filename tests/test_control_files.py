"""Which control line a micro-batch is judged by, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.errors import PromiseConflict
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile

ONE, TWO = ControlLine.for_batch(1000), ControlLine.for_batch(2000)
WITH_CLOCK = ControlLine.for_batch(1000, chosen_at_ms=5000, decided_at_ms=4000)


@pytest.fixture
def files(tmp_path: Path) -> ControlFiles:
    return ControlFiles(tmp_path / "promise")


def test_a_micro_batch_has_the_line_that_the_reader_wrote(files: ControlFiles) -> None:
    files.write("a", WITH_CLOCK)
    files.write("b", TWO)
    assert (files.line_of("a", 1000), files.line_of("b", 2000)) == (WITH_CLOCK, TWO)


@pytest.mark.parametrize("written", [None, TWO])
def test_a_repeated_micro_batch_has_the_heartbeat_of_its_checkpoint(
    written: ControlLine | None, files: ControlFiles
) -> None:
    if written is not None:
        files.write("a", written)
    assert files.line_of("a", 1000) == ONE


def test_without_a_heartbeat_nothing_is_judged(files: ControlFiles) -> None:
    files.write("a", ONE)
    assert files.line_of("a", None) == ControlLine()


def test_the_row_of_a_file_has_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.spark.worker.control_row_file._LONGEST_S", 0.0)
    first, second = ControlRowFile(tmp_path), ControlRowFile(tmp_path)
    first.write(ONE)
    second.restore(TWO)
    with pytest.raises(PromiseConflict, match=r"\[promise-shared\] another query is running under the promise in"):
        second.write(TWO)
    assert first.path.read_text() == ONE.text()
