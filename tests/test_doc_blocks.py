"""Every command, query and program in the documentation runs, or says above itself what it needs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.language import parse
from tests.helpers.doc_blocks import PAGES, ROOT, SHELL, Block, blocks_of
from tests.helpers.run_doc_blocks import prepare

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
LANGUAGES = {"python", "sql", "sh", "console", "text", "yaml", "diff"}
TESTED_ELSEWHERE = {
    "make demo": "spark/test_demo.py",
    "make test": "conftest.py",
    "slackwater demo": "spark/test_demo.py",
    "slackwater demo --watch": "spark/test_demo.py",
    "pip install": "test_house.py",
    "slackwater reproduce": "papers/test_kim.py",
}
"""Commands that other tests run, with smaller figures: the beginning of the command, and the test."""


def pages_with(*languages: str) -> list[str]:
    return sorted({block.page for block in BLOCKS if block.language in languages and block.is_run})


def test_every_block_says_its_language() -> None:
    assert not [f"{block.page}:{block.line}" for block in BLOCKS if block.language not in LANGUAGES]


def test_a_block_that_is_not_run_is_rare_and_says_what_it_needs() -> None:
    titles = {block.title for block in BLOCKS if block.title.startswith("needs ")}
    assert all(len(title.split()) > 2 for title in titles)
    assert all((ROOT / "tests" / test).exists() for test in TESTED_ELSEWHERE.values())


@pytest.mark.parametrize("page", pages_with("sql"))
def test_sql_blocks_are_right(page: str) -> None:
    for block in BLOCKS:
        if block.page == page and block.language == "sql" and block.is_run:
            parse(block.text)


@pytest.fixture(scope="module")
def python_errors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str | None]:
    """By page: the error of its Python blocks."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.helpers.run_doc_blocks", *pages_with("python")],
        cwd=tmp_path_factory.mktemp("docs"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"page"')]
    assert lines, ran.stderr
    return {line["page"]: line["error"] for line in lines}


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(page: str, python_errors: Mapping[str, str | None]) -> None:
    assert python_errors[page] is None, python_errors[page]


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.parametrize("page", pages_with(*SHELL))
def test_shell_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()
    for block in BLOCKS:
        if block.page != page or not block.is_run:
            continue
        if block.language == "sql" and not Path("peaks.sql").exists():
            Path("peaks.sql").write_text(block.text)
        if block.language in SHELL:
            run_commands(block)


def run_commands(block: Block) -> None:
    """Run the commands of a block one after the other; one that serves until Ctrl-C gets it once it is up."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in block.commands:
        if any(command.startswith(tested) for tested in TESTED_ELSEWHERE):
            continue
        if written := re.match(r"slackwater generate (\S+)", command):
            Path(written[1]).unlink(missing_ok=True)
        if re.search(r"slackwater watch(?!.*(--once|--json))", command):
            interrupt_once_it_serves(command, environment)
            continue
        ran = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1), f"{block.page}:{block.line}: {command}\n{ran.stdout}{ran.stderr}"
        assert "Traceback" not in ran.stderr, ran.stderr


def interrupt_once_it_serves(command: str, environment: Mapping[str, str]) -> None:
    """Start the command, wait for its address, and press Ctrl-C."""
    served = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        env=dict(environment),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    assert served.stderr is not None
    line = served.stderr.readline()
    assert "http://" in line, line
    os.killpg(served.pid, signal.SIGINT)
    assert served.wait() in (0, 130)
