"""What SLACK n holds and loses at different triggers: row by row, and with one heartbeat per micro-batch.

A stream of 1,000 rows per second is cut into micro-batches of 0.2, 1, 5 and 10 seconds. "per row" is the method without
micro-batches. "one heartbeat" applies the same method once per micro-batch, as every method of disorder control does:
the heartbeat of one micro-batch judges the rows of the next. "Spark" runs a query with SLACK n, whose slack buffer
judges row by row, on the same micro-batches. Held: the most rows above the heartbeat at the end of a micro-batch.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slackwater.control.disorder import Batch, make_method
from slackwater.promises import Completeness

SLACKS = (20, 200, 2_000)
TRIGGERS_S = (0.2, 1.0, 5.0, 10.0)
RATE_PER_S = 1_000
MEAN_LATENESS_S = 0.05
START_S = 1_700_000_000


def stream(seconds: float) -> pd.DataFrame:
    """Rows in the order of their arrival, with exponential lateness."""
    draw = np.random.default_rng(2007)
    rows = int(seconds * RATE_PER_S)
    arrived = np.sort(draw.uniform(0.0, seconds, rows))
    ts = arrived - draw.exponential(MEAN_LATENESS_S, rows)
    columns = {"ts": ts, "arrived": arrived}
    return pd.DataFrame(
        {name: pd.to_datetime(START_S + at, unit="s", utc=True).round("us") for name, at in columns.items()}
    )


def cut(data: pd.DataFrame, trigger_s: float) -> list[pd.DataFrame]:
    """The rows of each micro-batch."""
    since = (data["arrived"] - pd.Timestamp(START_S, unit="s", tz="UTC")).dt.total_seconds()
    return [part for _, part in data.groupby((since / trigger_s).astype(int))]


def per_row(data: pd.DataFrame, slack_rows: int) -> int:
    """How many rows are late for the method without micro-batches. It holds ``slack_rows`` rows."""
    values = _ms(data["ts"])
    method: Any = make_method("fixed-slack", Completeness(0.0), slack_rows=slack_rows)
    heartbeats = method.trail(values, None)
    return int((values[1:] < heartbeats[:-1]).sum())


def one_heartbeat(parts: list[pd.DataFrame], slack_rows: int) -> tuple[int, int]:
    """Late rows and most rows held, if each micro-batch is judged by the heartbeat of the one before."""
    method = make_method("fixed-slack", Completeness(0.0), slack_rows=slack_rows)
    heartbeat, late, most = -np.inf, 0, 0
    waiting = np.empty(0)
    for part in parts:
        values = _ms(part["ts"])
        late += int((values < heartbeat).sum())
        waiting = np.concatenate([waiting[waiting > heartbeat], values[values > heartbeat]])
        most = max(most, len(waiting))
        method.observe(Batch(values))
        heartbeat = method.heartbeat(None)
    return late, most


def on_spark(spark: Any, parts: list[pd.DataFrame], slack_rows: int, folder: Path) -> tuple[int, int]:
    """The same from the ledger and the slack buffer of a query on Spark."""
    import slackwater as sw

    inbox = folder / "in"
    inbox.mkdir(parents=True)
    for number, part in enumerate(parts):
        file = inbox / f"{number:05d}.parquet"
        part.to_parquet(file, coerce_timestamps="us", index=False)
        os.utime(file, (START_S + number, START_S + number))
    reader = spark.readStream.schema("ts timestamp, arrived timestamp").option("maxFilesPerTrigger", 1)
    sw.stream("Readings", reader.parquet(str(inbox)), event_time="ts")
    text = f"SELECT COUNT(*) FROM Readings [RANGE 10 seconds SLIDE 1 second ARRIVAL arrived SLACK {slack_rows}]"
    name = folder.name
    result = sw.sql(spark, text, name=name, location=str(folder / "promise"))
    writer = result.writeStream.option("checkpointLocation", str(folder / "at")).trigger(availableNow=True)
    query = writer.format("noop").start()
    query.awaitTermination()
    if query.exception() is not None:
        raise RuntimeError(str(query.exception()))
    ledger = sw.report(query).ledger
    assert ledger.exact and ledger.on_time + ledger.late == sum(map(len, parts))
    held = [progress["observedMetrics"].get(f"slackwater-slack:{name}") for progress in query.recentProgress]
    return ledger.late, max(row["held"] or 0 for row in held if row is not None)


def _ms(times: pd.Series) -> Any:
    return times.astype("datetime64[us, UTC]").astype("int64").to_numpy() / 1e3


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="length of the stream")
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    data = stream(options.seconds)
    found = []
    for slack_rows in SLACKS:
        alone = per_row(data, slack_rows)
        for trigger_s in TRIGGERS_S:
            late, held = one_heartbeat(cut(data, trigger_s), slack_rows)
            found.append(
                {"slack": slack_rows, "trigger_s": trigger_s, "per_row_late": alone, "late": late, "held": held}
            )
    if not options.without_spark:
        from slackwater.spark.command.session import local_session

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, local_session("slack") as spark:
            spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 10_000)
            for row in found:
                folder = Path(scratch) / f"slack-{row['slack']}-{row['trigger_s']}"
                row["spark_late"], row["spark_held"] = on_spark(
                    spark, cut(data, row["trigger_s"]), int(row["slack"]), folder
                )
    if options.json:
        print(json.dumps(found))
        return
    print(f"{len(data):,} rows; late rows, and the most rows held")
    print(f"{'SLACK':>6}{'trigger':>9}{'per row':>16}{'on Spark':>16}{'one heartbeat per micro-batch':>32}")
    for row in found:
        spark_text = f"{row['spark_late']:,}, {row['spark_held']:,}" if "spark_late" in row else "-"
        print(
            f"{row['slack']:>6,}{row['trigger_s']:>7g} s{row['per_row_late']:>9,}, {row['slack']:,}"
            f"{spark_text:>18}{row['late']:>22,}, {row['held']:,}"
        )


if __name__ == "__main__":
    main()
