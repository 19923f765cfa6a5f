"""The docs name every method, every generated stream and every option of the laboratory."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.cli.lab_disorder import command
from slackwater.control.disorder import method_names
from slackwater.sim.streams import stream_names

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("name", method_names())
def test_index_names_every_method(name: str) -> None:
    assert f"[`{name}`]({name}.md)" in (DOCS / "methods" / "README.md").read_text()


@pytest.mark.parametrize("name", method_names())
def test_every_method_has_a_page(name: str) -> None:
    assert (DOCS / "methods" / f"{name}.md").read_text().startswith(f"# `{name}`")


def test_laboratory_page_is_complete() -> None:
    page = (DOCS / "lab.md").read_text()
    missing = [name for name in stream_names() if f"`{name}`" not in page]
    missing += [
        option
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option not in page
    ]
    assert not missing
