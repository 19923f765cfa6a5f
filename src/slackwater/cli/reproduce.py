"""``slackwater reproduce``: run a paper's experiments and check its conclusions."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from slackwater import papers
from slackwater.cli.progress import unless_interrupted, working
from slackwater.errors import UnknownName
from slackwater.extras import require
from slackwater.files import require_output_folder
from slackwater.papers.reproduction import Claim, Paper


def paper_keys() -> list[str]:
    """Keys of the papers that can be reproduced: every sub-package of ``slackwater.papers``."""
    return [module.name for module in pkgutil.iter_modules(papers.__path__) if module.ispkg]


def load_paper(key: str) -> Paper:
    """The ``PAPER`` that the package of this key defines."""
    paper = importlib.import_module(f"slackwater.papers.{key}").PAPER
    assert isinstance(paper, Paper)
    return paper


@click.command("reproduce")
@click.argument("paper", type=click.Choice(paper_keys()), metavar="PAPER")
@click.option("--figure", "figures", multiple=True, help="Run only this figure or table (repeatable).")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the figures.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON on standard output.")
def command(paper: str, figures: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Run the experiments of PAPER; write its figures and a table of claims.

    PAPER is kim2007, kim2010, kim2012, tu2006 or zhu2004.

    \b
    Examples:
      slackwater reproduce kim2012
      slackwater reproduce kim2012 --figure 6 --json
    """
    require("matplotlib", purpose="slackwater reproduce")
    chosen = load_paper(paper)
    for figure in figures:
        if figure not in chosen.experiments:
            raise UnknownName(
                "unknown-figure", f"{paper} has no figure {figure!r}", f"use one of: {', '.join(chosen.experiments)}"
            )
    require_output_folder(out, "--out ")
    folder = out / paper
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=as_json)
    claims: list[Claim] = []
    with (
        working(paper, spinner=False) as work,
        Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console) as progress,
        unless_interrupted("the claims so far"),
    ):
        for figure in figures or chosen.experiments:
            task = progress.add_task(f"{paper} {figure}", total=1.0)

            def report(done: float, stage: str, task: object = task, figure: str = figure) -> None:
                what = f"{paper} {figure}: {stage}"
                progress.update(task, completed=done, description=what)  # type: ignore[arg-type]
                work.say(f"{what}, {100 * done:.0f}%")

            claims += chosen.experiments[figure](folder, report)
            progress.update(task, completed=1.0, description=f"{paper} {figure}")
    if as_json:
        click.echo(json.dumps([claim.as_json() for claim in claims], indent=2))
        return
    table = Table(title=chosen.citation, show_lines=True)
    for column in ("figure", "paper", "measured", "same conclusion?", "note"):
        table.add_column(column)
    for claim in claims:
        same = "yes" if claim.same_conclusion else "NO"
        table.add_row(claim.figure, claim.paper_says, claim.measured, same, claim.note)
    console.print(table)
    for reading in chosen.readings:
        console.print(f"reading: {reading}")
    console.print(f"figures written to {folder}")
