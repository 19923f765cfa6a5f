"""Paths that a user names: which files they mean, and whether output can be written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.errors import InvalidData, InvalidOption
from slackwater.files import common_format, data_files, require_output_file, require_output_folder


def test_a_file_a_folder_and_a_pattern_name_files(tmp_path: Path) -> None:
    for name in ("in/b.json", "in/a.json.gz", "in/_SUCCESS", "in/.hidden.json", "in/day=1/c.json", "odd[1].json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(where: str) -> list[str]:
        return [file.name for file in data_files(str(tmp_path / where))]

    assert names("in") == ["a.json.gz", "b.json", "c.json"]
    assert names("in/*.json") == ["b.json"]
    assert names("in/b.json") == ["b.json"]
    assert names("odd[1].json") == ["odd[1].json"]
    assert names("nowhere") == []
    assert common_format(str(tmp_path / "in"), "") == "json"


@pytest.mark.parametrize(
    ("names", "condition", "text"),
    [
        ([], "no-such-file", "has no files"),
        (["a.json", "b.csv"], "unknown-format", "b.csv is not that of the others"),
        (["a.xml"], "unknown-format", "a.xml is not that of the others, or not known"),
    ],
)
def test_a_folder_without_one_format_is_refused(tmp_path: Path, names: list[str], condition: str, text: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InvalidData, match=text) as refused:
        common_format(str(tmp_path), "--source replay:")
    assert refused.value.condition == condition


def test_output_is_tried_and_nothing_is_left_behind(tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    require_output_file(None, "--plot")
    require_output_file(tmp_path / "plot.png", "--plot")
    require_output_folder(tmp_path / "new" / "folder", "--out ")
    require_output_folder("s3a://bucket/out", "--sink parquet:")
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(InvalidOption, match=r"--plot /nowhere/x\.png: there is no folder /nowhere"):
        require_output_file(Path("/nowhere/x.png"), "--plot")
    with pytest.raises(InvalidOption, match="is a folder"):
        require_output_file(tmp_path, "--plot")
    file = tmp_path / "file"
    file.write_text("kept")
    require_output_file(file, "--plot")
    assert file.read_text() == "kept"
    with pytest.raises(InvalidOption, match=r"--sink parquet:.*file is a file"):
        require_output_folder(file / "out", "--sink parquet:")


def test_a_file_system_without_write_access_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"\[not-writable\] --sink parquet:/proc/out cannot be written"):
        require_output_folder("/proc/out", "--sink parquet:")
    with pytest.raises(InvalidOption, match="not-writable"):
        require_output_file(Path("/proc/plot.png"), "--plot")
