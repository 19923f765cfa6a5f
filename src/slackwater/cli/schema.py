"""``--schema``: the streams that a query text may name, for the verbs that do without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from slackwater.cli.query_file import read_query_file
from slackwater.plan import Catalog

schema_option = click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CREATE TABLE statements of the streams: columns are then checked too.",
)


def read_catalog(schema: Path | None) -> Catalog:
    """The catalog in a file of CREATE TABLE statements, or an empty one."""
    return Catalog() if schema is None else Catalog.from_sql(read_query_file(schema))
