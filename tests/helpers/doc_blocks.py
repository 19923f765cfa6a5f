"""The code blocks of the documentation, and what runs them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("sh", "console")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``title`` is shown above it on the site; ``needs …`` says what it cannot be run without."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def is_run(self) -> bool:
        """Whether a test runs it."""
        return self.language in ("python", "sql", *SHELL) and not self.title.startswith("needs ")

    @property
    def commands(self) -> list[str]:
        """The command lines of a shell block, without prompts, comments and output."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip() and not line.startswith("#")]


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        title = re.search(r'title="([^"]*)"', found["rest"])
        yield Block(
            str(page.relative_to(ROOT)),
            text[: found.start()].count("\n") + 2,
            found["language"],
            "" if title is None else title[1],
            textwrap.dedent(found["text"]),
        )
