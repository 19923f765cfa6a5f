"""Damaged files of a promise: each reads as what was written or as missing, and nothing raises."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slackwater.control.ledger import Ledger
from slackwater.control.policy import Policy
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.watching.point import Point
from slackwater.watching.series import About
from slackwater.watching.series_file import SeriesReader, SeriesWriter, series_path

DAMAGES = min(int(os.environ.get("SLACKWATER_FUZZ", "60")), 2000)
QUERY = "8c4a1b3e-0000-4000-8000-000000000000"
SNAPSHOT: dict[str, Any] = {
    "batch": 7,
    "ledger": {"on_time": 5, "shed": 2},
    "controller": {"law": "ctrl-batch"},
    "x": 0.1,
}
POLICY = Policy(1000.0, 1010.0, 900.0, 50.0)


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """The bytes of a file after a crash, a bad disk or a wrong hand."""
    at = rng.randrange(len(whole))
    kind = rng.randrange(7)
    if kind == 0:
        return whole[:at]
    if kind == 1:
        return whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
    if kind == 2:
        return rng.randbytes(rng.randrange(200))
    if kind == 3:
        return whole[:at] + bytes(rng.randrange(60)) + whole[at:]
    if kind == 4:
        return whole[at:] + whole[:at]
    if kind == 5:
        return rng.choice((b"", b"\n", b"null", b"[]", b"{}", b"7", b'"a"', b"\xff\xfe", b"[" * 5000, b"1e999", b"NaN"))
    return whole + rng.choice((b"x", whole, b"\n", b"\x00"))


def each_damage(path: Path, read: Callable[[], Any]) -> list[Any]:
    """What ``read`` returns after each damage to the file."""
    whole, found = path.read_bytes(), []
    for seed in range(DAMAGES):
        path.write_bytes(damaged(random.Random(seed), whole))
        try:
            found.append(read())
        except Exception as error:
            pytest.fail(f"damage {seed}: {type(error).__name__}: {error}\n{path.read_bytes()[:300]!r}")
    path.write_bytes(whole)
    return found


def test_a_damaged_snapshot_is_missing(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "promise")
    mailbox.write_snapshot(QUERY, SNAPSHOT)
    found = each_damage(mailbox.folder / f"snapshot-{QUERY}.json", lambda: mailbox.read_snapshot(QUERY))
    assert all(one is None or one == SNAPSHOT for one in found) and None in found
    assert mailbox.read_snapshot(QUERY) == SNAPSHOT


def test_a_snapshot_without_a_checksum_is_missing(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "promise")
    mailbox.write_snapshot(QUERY, SNAPSHOT)
    (mailbox.folder / f"snapshot-{QUERY}.json").write_text(json.dumps(SNAPSHOT))
    assert mailbox.read_snapshot(QUERY) is None


def test_a_damaged_offer_is_missing(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "promise")
    mailbox.publish("epoch", POLICY, True, {"ledger": Ledger(on_time=3).as_json()})
    whole = mailbox.read_offer("epoch")
    assert whole is not None and whole.policy == POLICY
    for offer in each_damage(mailbox.folder / "heartbeat-epoch.json", lambda: mailbox.read_offer("epoch")):
        assert offer is None or offer == whole


def test_a_damaged_control_line_is_missing_or_written_again(tmp_path: Path) -> None:
    files = ControlFiles(tmp_path / "promise")
    line = ControlLine.for_batch(1_700_000_000_000, 1_700_000_000_500, sample_cells=True)
    files.write("epoch", line)
    # the line that judges a micro-batch always has the heartbeat of the micro-batch, whatever the file says
    for found in each_damage(
        tmp_path / "promise" / "control-epoch.txt", lambda: files.line_of("epoch", 1_700_000_000_000)
    ):
        assert found.heartbeat_us == line.heartbeat_us
    each_damage(tmp_path / "promise" / "control-epoch.txt", lambda: files.write("epoch", line))
    assert files.read("epoch") == line


def test_a_damaged_shed_row_sheds_no_more_than_everything(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "promise")
    mailbox.write_shed_ratio(0.25, 884, 0.5, 0.075)
    for row in each_damage(mailbox.shed_path, mailbox.read_shed_row):
        if row is not None:
            ratio, cell, keep_ratio, least_ratio = map(float, row.split())
            assert 0.0 <= ratio < 1.0 and 0.0 <= keep_ratio <= 1.0 and 0.0 <= least_ratio <= 1.0 and cell == int(cell)
    each_damage(mailbox.shed_path, lambda: mailbox.write_shed_ratio(0.5))
    mailbox.write_shed_ratio(0.25, 884, 0.5, 0.075)
    assert mailbox.read_shed_row() == "0.250000 +00884 0.500000000 0.075000000\n"


def test_a_damaged_series_loses_points_only(tmp_path: Path) -> None:
    about = About(QUERY, "query", "promise", "timeliness", 2.0, "ctrl-batch")
    path = series_path(tmp_path, QUERY)
    writer = SeriesWriter(path, about, 0)
    for batch in range(6):
        writer.add(Point(at_ms=1000.0 * batch, batch=batch, ledger=Ledger(on_time=batch), cause="nothing shed"))
    for series in each_damage(path, lambda: SeriesReader(path).read()):
        assert series is None or len(series.points) <= 6
    each_damage(path, lambda: SeriesWriter(path, about, 9).end("stopped"))
