"""``slackwater``: verbs are loaded when they are called, so that ``--help`` answers at once."""

from __future__ import annotations

import sys

import click

from slackwater.cli.lazy import LazyGroup
from slackwater.errors import QueryFailed, SlackwaterError

VERBS = {
    "advise": ("slackwater.cli.advise", "What to write in withWatermark, from recorded rows."),
    "check": ("slackwater.cli.check", "Is this query text right? Without Spark."),
    "demo": ("slackwater.cli.demo", "See a real Spark query keep a drop ratio."),
    "explain": ("slackwater.cli.explain", "What would be done for a query. Without Spark."),
    "lab": ("slackwater.cli.lab", "Try methods on recorded streams, without Spark."),
    "reconcile": ("slackwater.cli.reconcile", "Merge published windows and late panes into the exact table."),
    "reproduce": ("slackwater.cli.reproduce", "Run a paper's experiments again."),
    "run": ("slackwater.cli.run", "Run a query on a local Spark."),
}


command = LazyGroup("slackwater", VERBS, "Promises for Spark streams.")


def main() -> None:
    """Run the command: 0 kept, 1 broken or failed, 2 bad input; no traceback for bad input."""
    try:
        sys.exit(command.main(standalone_mode=False) or 0)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except SlackwaterError as error:
        click.echo(f"slackwater: {error}", err=True)
        sys.exit(1 if isinstance(error, QueryFailed) else 2)


if __name__ == "__main__":
    main()
