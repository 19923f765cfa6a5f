"""``slackwater generate``: write a recorded stream to try things on."""

from __future__ import annotations

import json
from pathlib import Path

import click

from slackwater.errors import InvalidOption
from slackwater.files import require_output_file


@click.command("generate")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rows", type=click.IntRange(1), default=120_000, show_default=True, help="Number of rows.")
@click.option("--rate", type=click.IntRange(1), default=100, show_default=True, help="Rows per second.")
@click.option(
    "--wrong-clocks",
    type=click.IntRange(0),
    help="Rows stamped 1970, 2099 or not at all.  [default: 30, or as many as there are rows]",
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same rows.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(file: Path, rows: int, rate: int, wrong_clocks: int | None, seed: int, as_json: bool) -> None:
    """Write a recorded stream of sensor readings to FILE (Parquet), to try things on.

    Columns: ts (event time), arrived, sensor, value. In the first third of the rows 99% arrive within five seconds; in
    the second the lateness drifts to ten times as much; in the last it comes in bursts. Needs no Spark.

    \b
    Examples:
      slackwater generate readings.parquet
      slackwater generate readings.parquet --rows 1000000 --rate 1000 --seed 7
    """
    if file.suffix.lower() != ".parquet":
        raise InvalidOption("unknown-format", f"{file} does not end in .parquet", f"write {file.stem}.parquet")
    if wrong_clocks is None:
        wrong_clocks = min(30, rows)
    if wrong_clocks > rows:
        problem = f"--wrong-clocks {wrong_clocks} is more than --rows {rows}"
        raise InvalidOption("too-many-wrong-clocks", problem, "ask for fewer")
    require_output_file(file, "FILE")
    from slackwater.spark.command.recording import START, recorded_readings, write_recording

    write_recording(file, recorded_readings(rows, rate, wrong_clocks, seed))
    if as_json:
        click.echo(json.dumps({"file": str(file), "rows": rows, "rate": rate, "from": f"{START:%Y-%m-%dT%H:%M:%SZ}"}))
        return
    click.echo(f"{file}: {rows:,} rows, {rate} per second from {START:%Y-%m-%d %H:%M} UTC on")
