"""``slackwater retarget``: change the promised delay of running queries."""

from __future__ import annotations

import json
from pathlib import Path

import click

from slackwater.cli.mounted_folder import MountedFolder
from slackwater.errors import UnknownName
from slackwater.promises import Timeliness
from slackwater.spark.worker.mailbox import ABOUT, Mailbox
from slackwater.units import duration_text
from slackwater.watching.folders import promise_folders


@click.command("retarget")
@click.argument("location", type=MountedFolder())
@click.argument("delay", required=False)
@click.option("--promise", metavar="NAME", help="The promise to change, if the location has several.")
@click.option("--reset", is_flag=True, help="Return to the target in the query, instead of DELAY.")
@click.option("--json", "as_json", is_flag=True, help="Print the change as JSON.")
def command(location: Path, delay: str | None, promise: str | None, reset: bool, as_json: bool) -> None:
    """Change the promised delay of running queries to DELAY, from their next micro-batch on.

    LOCATION is the folder that the query writes to: the value of location= or spark.slackwater.location, or a
    checkpoint. The new target survives a restart and wins over the one in the query. A wrong DELAY changes nothing.

    \b
    Examples:
      slackwater retarget /data/checkpoints '5 seconds'
      slackwater retarget /data/checkpoints '500 ms' --promise clicks-delay
      slackwater retarget /data/checkpoints --reset
    """
    if (delay is None) != reset:
        raise click.UsageError("give either DELAY or --reset")
    target = None if delay is None else Timeliness.of(delay, option="DELAY")
    mailbox = _mailbox(location, promise)
    mailbox.write_target(None if target is None else target.max_delay_s)
    max_delay_s = None if target is None else target.max_delay_s
    if as_json:
        click.echo(json.dumps({"promise": mailbox.folder.name, "promised_delay_s": max_delay_s}))
    else:
        words = "the target in the query" if max_delay_s is None else f"DELAY {duration_text(max_delay_s * 1e3)}"
        click.echo(f"{mailbox.folder.name}: {words} from the next micro-batch on")


def _mailbox(location: Path, promise: str | None) -> Mailbox:
    """The folder of the timeliness promise below ``location``; refuses none and several."""
    found = [Mailbox(folder) for folder in promise_folders(location)]
    found = [mailbox for mailbox in found if (mailbox.folder / ABOUT).exists()]
    names = ", ".join(mailbox.folder.name for mailbox in found)
    chosen = [mailbox for mailbox in found if promise in (None, mailbox.folder.name)]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise UnknownName("several-promises", f"{location} has several timeliness promises", f"--promise: {names}")
    what = "no timeliness promise" if promise is None else f"no timeliness promise {promise!r}"
    raise UnknownName("no-promise", f"{location} has {what}", f"name one of: {names}" if names else "check the path")
