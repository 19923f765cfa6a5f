"""``slackwater reconcile``: merge published windows and late panes into the exact table."""

from __future__ import annotations

from pathlib import Path

import click

from slackwater.cli.progress import working
from slackwater.errors import InvalidOption
from slackwater.files import require_output_folder


@click.command("reconcile")
@click.argument("published", type=click.Path(exists=True, path_type=Path))
@click.option("--late", type=click.Path(exists=True, path_type=Path), help="Late panes written to a sink of their own.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the exact table to this folder as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print the exact table as JSON lines on standard output.")
def command(published: Path, late: Path | None, out: Path | None, as_json: bool) -> None:
    """Merge the Parquet files that a query with LATE PANES wrote to PUBLISHED into the exact table.

    \b
    Examples:
      slackwater reconcile out --out exact
      slackwater reconcile out --json
    """
    if out is not None and out.exists() and (out.is_file() or any(out.iterdir())):
        raise InvalidOption("out-in-use", f"--out {out} is not empty", "name another folder")
    require_output_folder(out, "--out ")
    from slackwater.spark.command import session  # imports pyspark, so only after the options are checked
    from slackwater.spark.command.sinks import as_json_lines
    from slackwater.spark.windows.reconcile import read_published, reconcile

    with working("starting Spark …"), session.local_session("slackwater-reconcile") as spark:
        on_time = read_published(spark, published)
        exact = reconcile(on_time, None if late is None else read_published(spark, late))
        ordered = exact.orderBy(*exact.columns[:3])
        if out is not None:
            ordered.coalesce(1).write.mode("append").parquet(str(out))
        if as_json:
            for line in as_json_lines(ordered):
                click.echo(line)
        elif out is None:
            click.echo(ordered.toPandas().to_string(index=False))
