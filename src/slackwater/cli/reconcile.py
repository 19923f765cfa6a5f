"""``slackwater reconcile``: published windows and late panes become the exact table."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("reconcile")
@click.argument("published", type=click.Path(exists=True, path_type=Path))
@click.option("--late", type=click.Path(exists=True, path_type=Path), help="The late panes, if they are apart.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for the exact table as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="The exact table as JSON lines on standard output.")
def command(published: Path, late: Path | None, out: Path | None, as_json: bool) -> None:
    """Merge what a query with LATE PANES wrote to PUBLISHED (Parquet) into the exact table.

    \b
    Examples:
      slackwater reconcile out --out exact
      slackwater reconcile out --json
    """
    from slackwater.spark.reconcile import reconcile  # Spark is loaded only when it is needed
    from slackwater.spark.session import local_session

    with local_session("slackwater-reconcile") as spark:
        on_time = spark.read.parquet(str(published))
        exact = reconcile(on_time, None if late is None else spark.read.parquet(str(late)))
        ordered = exact.orderBy("window_end")
        if out is not None:
            ordered.write.parquet(str(out))
        if as_json:
            for row in ordered.toJSON().toLocalIterator():
                click.echo(str(row))
        elif out is None:
            click.echo(ordered.toPandas().to_string(index=False))
