"""``slackwater check``: validate query texts without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import click

from slackwater.cli.query_file import read_query_file
from slackwater.cli.schema import read_catalog, schema_option
from slackwater.errors import SlackwaterError
from slackwater.language import Query, parse_script, print_query
from slackwater.plan import Catalog, Plan, explain_standing, plan_query_text
from slackwater.plan.name_checks import check_names


def _execution_path(query: Query, catalog: Catalog) -> str:
    if catalog.streams:
        check_names(query, catalog)
    if query.precision is None:
        plan = plan_query_text(query, catalog)
        return plan.path.value if isinstance(plan, Plan) else "combined"
    explain_standing(query, catalog)
    return "standing"


@click.command("check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@schema_option
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_context
def command(ctx: click.Context, file: Path, schema: Path | None, as_json: bool) -> None:
    """Check the queries in FILE without starting Spark.

    \b
    Examples:
      slackwater check queries.sql
      slackwater check queries.sql --schema streams.sql --json
    """
    try:
        queries = parse_script(read_query_file(file))
        catalog = read_catalog(schema)
        paths = [_execution_path(query, catalog) for query in queries]
    except SlackwaterError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"right": False, "condition": error.condition, "message": str(error)}, indent=2))
        ctx.exit(2)
    if as_json:
        found = [{"query": print_query(q), "path": path} for q, path in zip(queries, paths, strict=True)]
        click.echo(json.dumps({"right": True, "queries": found}, indent=2))
        return
    for query, path in zip(queries, paths, strict=True):
        click.echo(f"right ({path}): {print_query(query)}")
