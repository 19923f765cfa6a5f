"""The ``slackwater`` command. A verb is imported when it is called, so ``--help`` answers at once."""

from __future__ import annotations

import os
import sys

import click

from slackwater import __version__
from slackwater.cli.lazy import LazyGroup
from slackwater.errors import QueryFailed, SlackwaterError

VERBS = {
    "demo": ("slackwater.cli.demo", "Watch a real Spark query keep a drop ratio."),
    "watch": ("slackwater.cli.watch", "Open a live page: is each promise kept, by how much, since when?"),
    "generate": ("slackwater.cli.generate", "Write a recorded stream to try things on."),
    "advise": ("slackwater.cli.advise", "Recommend a watermark delay from recorded rows."),
    "check": ("slackwater.cli.check", "Check a query text, without Spark."),
    "explain": ("slackwater.cli.explain", "Show how a query would run, without Spark."),
    "run": ("slackwater.cli.run", "Run a query on a local Spark."),
    "retarget": ("slackwater.cli.retarget", "Change the promised delay of a running query."),
    "reconcile": ("slackwater.cli.reconcile", "Merge published windows and late panes into the exact table."),
    "lab": ("slackwater.cli.lab", "Try methods on recorded streams, without Spark."),
    "reproduce": ("slackwater.cli.reproduce", "Run a paper's experiments."),
    "completion": ("slackwater.cli.completion", "Print the shell completion script."),
}
SECTIONS = {
    "1. See it": ("demo", "watch", "generate"),
    "2. Ask about your own stream": ("advise", "check", "explain"),
    "3. Run it": ("run", "retarget", "reconcile"),
    "4. Look underneath": ("lab", "reproduce"),
}

_HELP = """Promises for Spark streams: state how much you may lose, and feedback sets the watermark.

\b
In a program:
  import slackwater as sw
  events = sw.with_drop_ratio(events, "ts", 0.01)   # instead of withWatermark("ts", "10 minutes")

On the command line, in the order worth trying:
"""

_EPILOG = """\b
Start with:
  slackwater demo --watch
  slackwater advise events.parquet --event-time ts --arrival ingested_at

\b
Every verb has --help with examples, and --json for machine-readable output.
Exit codes: 0 kept or done, 1 a promise is broken or the query failed, 2 bad input.
"""

_SHOW_TRACEBACK = "SLACKWATER_DEBUG"


def _set_debug(debug: bool) -> None:
    if debug:
        os.environ[_SHOW_TRACEBACK] = "1"


command = LazyGroup(
    "slackwater",
    VERBS,
    _HELP,
    sections=SECTIONS,
    epilog=_EPILOG,
    callback=_set_debug,
    params=[
        click.Option(["--debug"], is_flag=True, help="Print the traceback of an error."),
    ],
    context_settings={"max_content_width": 100},
)
command = click.version_option(__version__, prog_name="slackwater")(command)


def main() -> None:
    """Run the command and exit: 0 kept or done, 1 broken or failed, 2 bad input. ``--debug`` prints tracebacks."""
    try:
        sys.exit(command.main(standalone_mode=False) or 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        if os.environ.get(_SHOW_TRACEBACK):
            raise
        sys.exit(_print_error(error))


def _print_error(error: Exception) -> int:
    """Print the error for a person and return the exit code."""
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, SlackwaterError):
        click.echo(f"slackwater: {error}", err=True)
        return 1 if isinstance(error, QueryFailed) else 2
    if type(error).__module__.startswith("pyspark.errors"):
        click.echo(f"slackwater: [spark] {(str(error).strip() or type(error).__name__).splitlines()[0]}", err=True)
        return 2 if type(error).__name__ in ("AnalysisException", "ParseException") else 1
    if isinstance(error, OSError) and error.filename is not None:
        click.echo(f"slackwater: [file-error] {error.filename}: {error.strerror}", err=True)
        return 1
    line = (str(error).strip() or "no message").splitlines()[0]
    click.echo(f"slackwater: {type(error).__name__}: {line}", err=True)
    click.echo("This is a bug in Slackwater. Run `slackwater --debug …` for the traceback.", err=True)
    return 1


if __name__ == "__main__":
    main()
