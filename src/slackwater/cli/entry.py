"""The console script: names the missing extra when the command line's own packages are not installed."""

from __future__ import annotations

import sys

from slackwater.errors import MissingRequirement
from slackwater.extras import require


def main() -> None:
    """Run ``slackwater``. Exits with 2 and one line on standard error when click or rich is missing."""
    try:
        require("click", "rich", purpose="the slackwater command")
    except MissingRequirement as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(2)
    from slackwater.cli.main import main as run_command  # imports click

    run_command()


if __name__ == "__main__":
    main()
