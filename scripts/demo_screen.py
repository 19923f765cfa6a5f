"""Runs the demo and puts its last screen into docs/start.md and its table into README.md: ``make demo-screen``.

Arguments go to ``slackwater demo``. Run it on an otherwise idle machine: results age while a busy one computes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
SCREEN = re.compile(r"^```text\n(?:KEPT|BROKEN): .*?^```$", re.MULTILINE | re.DOTALL)


def last_screen(output: str) -> str:
    """The lines from the verdict on, without the progress before them."""
    lines = [line.rstrip() for line in output.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith(("KEPT", "BROKEN")))
    return "\n".join(lines[first:]).rstrip()


def extract(screen: str) -> str:
    """The screen without its notes and rules, for README."""
    lines = screen.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("──")]
    table = lines[: rules[-1]]
    return "\n".join(line for line in table if line and not line.startswith(("──", "part of")))


def put_screen(page: str, screen: str) -> str:
    """The page with ``screen`` in the place of the one it shows."""
    found, count = SCREEN.subn(lambda _: f"```text\n{screen}\n```", page)
    if count != 1:
        sys.exit(f"the page shows {count} screens of the demo, not one")
    return found


def main() -> None:
    """Run the demo and rewrite both pages."""
    command = [sys.executable, "-m", "slackwater.cli.main", "demo", *sys.argv[1:]]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    screen = last_screen(ran.stdout)
    print(screen)
    for path, shown in ((README, extract(screen)), (START, screen)):
        path.write_text(put_screen(path.read_text(encoding="utf-8"), shown), encoding="utf-8")


if __name__ == "__main__":
    main()
