"""``slackwater explain``: show how a query would run, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import click

from slackwater.cli.query_file import read_query_file
from slackwater.cli.schema import read_catalog, schema_option
from slackwater.language import parse_script
from slackwater.plan import explain_query, explain_standing


@click.command("explain")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@schema_option
@click.option("--json", "as_json", is_flag=True, help="Print the plans as JSON.")
def command(file: Path, schema: Path | None, as_json: bool) -> None:
    """Show how the queries in FILE would run: path, panes, promise, method, cost.

    \b
    Examples:
      slackwater explain queries.sql
      slackwater explain queries.sql --schema streams.sql
    """
    catalog = read_catalog(schema)
    plans = [
        explain_query(query, catalog) if query.precision is None else explain_standing(query, catalog)
        for query in parse_script(read_query_file(file))
    ]
    if as_json:
        click.echo(json.dumps([_facts(plan) for plan in plans], indent=2, ensure_ascii=False))
        return
    click.echo("\n".join(plans), nl=False)


def _facts(text: str) -> dict[str, list[str]]:
    """Group the lines of a plan by the name in their first 12 columns; a line without a name continues the last."""
    facts: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        name = line[:12].strip() or name
        facts.setdefault(name, []).append(line[12:])
    return facts
