"""Damaged and odd input files are read as what they say, or refused: no crash, and no row changes silently."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import numpy as np
import pytest

from slackwater.errors import SlackwaterError
from slackwater.sim.recorded import read_recording
from slackwater.spark.command.replay_source import ReplaySource, csv_options
from slackwater.spark.command.sources import Source
from tests.fuzz.test_arguments import _BUG, call, folder
from tests.fuzz.test_promise_files import damaged

__all__ = ["folder"]
DAMAGES = min(int(os.environ.get("SLACKWATER_FUZZ", "40")), 3000)
STAMPS = ("2024-03-31T01:59:59+01:00", "2024-03-31T03:00:00+02:00", "2024-03-31T01:00:01Z", "2024-03-31 01:00:02")
"""Seconds that follow each other, around the night in which Berlin's clocks skip an hour."""
BOM = b"\xef\xbb\xbf"


def csv(*stamps: str) -> bytes:
    return "".join(["ts,seen\n", *(f"{stamp},{stamp}\n" for stamp in stamps)]).encode()


@pytest.mark.parametrize("name", ["readings.parquet", "readings.csv", "readings.csv.gz"])
def test_a_damaged_file_is_read_or_refused(name: str, folder: Path) -> None:
    file = Path(name)
    if name.endswith(".gz"):
        file.write_bytes(gzip.compress(Path("readings.csv").read_bytes() * 20))
    schema = () if file.suffix == ".parquet" else ("--schema", "ts TIMESTAMP")
    whole, codes = file.read_bytes(), set()
    for seed in range(DAMAGES):
        file.write_bytes(damaged(random.Random(seed), whole))
        for arguments in (
            ["lab", "disorder", name, "--event-time", "ts", "--arrival", "arrived", "--method", "fixed-slack"],
            ["run", "counts.sql", "--source", f"replay:{name}", *schema],
        ):
            code, output = call(arguments)
            assert code in (-1, 0, 1, 2) and _BUG not in output, (seed, arguments, output)
            codes.add(code)
    assert 2 in codes, "some damages must be noticed"


def test_a_truncated_folder_is_refused_before_spark_starts(folder: Path) -> None:
    Path("in", "2.parquet").write_bytes(Path("cut.parquet").read_bytes())
    Path("in", "1.parquet").unlink()
    code, output = call(["run", "counts.sql", "--source", "parquet:in"])
    assert code == 2 and "[not-parquet]" in output


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.csv", tmp_path / "marked.csv"
    plain.write_bytes(csv(*STAMPS))
    marked.write_bytes(BOM + csv(*STAMPS))
    schema = "ts TIMESTAMP, seen TIMESTAMP"
    assert csv_options(plain, schema) == csv_options(marked, schema) == {"header": "true"}
    first, second = (read_recording(file, "ts", "seen").trace.values for file in (plain, marked))
    assert np.array_equal(first, second)


def test_time_zones_may_be_mixed(tmp_path: Path) -> None:
    file = tmp_path / "mixed.csv"
    file.write_bytes(csv(*STAMPS))
    found = read_recording(file, "ts", "seen")
    assert found.invalid_rows == 0
    assert np.diff(found.trace.values).tolist() == [1000.0] * (len(STAMPS) - 1)


def test_a_source_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for content in (b"", b"PAR1", b"PAR1" * 3, BOM, b"\x00" * 100):
        (tmp_path / "in" / "1.parquet").write_bytes(content)
        for source in (f"parquet:{tmp_path}/in", f"replay:{tmp_path}/in"):
            with pytest.raises(SlackwaterError, match="not-parquet"):
                found = Source.parse(source, None)
                assert isinstance(found, Source | ReplaySource)
                found.check()
