"""``--schema``: the option that declares the streams of a query, for verbs that run without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from slackwater.cli.query_file import read_query_file
from slackwater.plan import Catalog

schema_option = click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CREATE TABLE statements of the streams; with it, columns are checked too.",
)


def read_catalog(schema: Path | None) -> Catalog:
    """The catalog from a file of CREATE TABLE statements, or an empty catalog."""
    return Catalog() if schema is None else Catalog.from_sql(read_query_file(schema))
