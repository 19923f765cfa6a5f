"""``slackwater``: verbs are loaded when they are called, so that ``--help`` answers at once."""

from __future__ import annotations

import os
import sys

import click

from slackwater import __version__
from slackwater.cli.lazy import LazyGroup
from slackwater.errors import QueryFailed, SlackwaterError

VERBS = {
    "demo": ("slackwater.cli.demo", "See a real Spark query keep a drop ratio."),
    "watch": ("slackwater.cli.watch", "A live page: is each promise kept, by how much, since when?"),
    "advise": ("slackwater.cli.advise", "What to write in withWatermark, from recorded rows."),
    "check": ("slackwater.cli.check", "Is this query text right? Without Spark."),
    "explain": ("slackwater.cli.explain", "What would be done for a query. Without Spark."),
    "run": ("slackwater.cli.run", "Run a query on a local Spark."),
    "reconcile": ("slackwater.cli.reconcile", "Merge published windows and late panes into the exact table."),
    "lab": ("slackwater.cli.lab", "Try methods on recorded streams, without Spark."),
    "reproduce": ("slackwater.cli.reproduce", "Run a paper's experiments again."),
    "completion": ("slackwater.cli.completion", "Let the Tab key know these commands."),
}
TOUR = {
    "1. See it": ("demo", "watch"),
    "2. Ask about your own stream": ("advise", "check", "explain"),
    "3. Run it": ("run", "reconcile"),
    "4. Look underneath": ("lab", "reproduce"),
}

_HELP = """Promises for Spark streams: say how much you may lose, and feedback sets the watermark.

\b
In a program:
  import slackwater as sw
  events = sw.with_drop_ratio(events, "ts", 0.01)   # instead of withWatermark("ts", "10 minutes")

From here, in the order in which they are worth trying:
"""

_EPILOG = """\b
Start with:
  slackwater demo --watch
  slackwater advise events.parquet --event-time ts --arrival ingested_at

\b
Every verb has --help with examples, and --json beside every table.
Ends with 0 (kept, done), 1 (a promise broken, or the query failed), 2 (bad input).
"""

_SHOW_TRACEBACK = "SLACKWATER_DEBUG"


def _set_debug(debug: bool) -> None:
    if debug:
        os.environ[_SHOW_TRACEBACK] = "1"


command = LazyGroup(
    "slackwater",
    VERBS,
    _HELP,
    sections=TOUR,
    epilog=_EPILOG,
    callback=_set_debug,
    params=[
        click.Option(["--debug"], is_flag=True, help="Show where an error comes from, as a traceback."),
    ],
    context_settings={"max_content_width": 100},
)
command = click.version_option(__version__, prog_name="slackwater")(command)


def main() -> None:
    """Run the command: 0 kept, 1 broken or failed, 2 bad input; no traceback unless asked for."""
    try:
        sys.exit(command.main(standalone_mode=False) or 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        if os.environ.get(_SHOW_TRACEBACK):
            raise
        sys.exit(_say(error))


def _say(error: Exception) -> int:
    """Tell a person what went wrong; what the command ends with."""
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, SlackwaterError):
        click.echo(f"slackwater: {error}", err=True)
        return 1 if isinstance(error, QueryFailed) else 2
    if type(error).__module__.startswith("pyspark.errors"):
        click.echo(f"slackwater: [spark] {(str(error).strip() or type(error).__name__).splitlines()[0]}", err=True)
        return 2 if type(error).__name__ in ("AnalysisException", "ParseException") else 1
    line = (str(error).strip() or "no message").splitlines()[0]
    click.echo(f"slackwater: {type(error).__name__}: {line}", err=True)
    click.echo("This should not have happened; slackwater --debug … shows where it did.", err=True)
    return 1


if __name__ == "__main__":
    main()
