"""Every method of disorder control on Spark: one stream, one drop ratio, the same micro-batches.

The stream has 1,000 rows per second. Lateness is lognormal with a median of 0.2 seconds; in the middle third it is
three times as long. It is replayed from files, one per second of arrivals, with the arrival of each row in a column, so
every method sees the same micro-batches however fast the machine is. The stream carries a heartbeat every second for
``source-heartbeat``: the largest event time below which nothing is still to come.
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

RATE_PER_S = 1_000
MEDIAN_S = 0.2
START_S = 1_700_000_000
OPTIONS: dict[str, dict[str, Any]] = {"fixed-slack": {"slack_rows": 2_000}}
"""``fixed-slack`` has to be told a size: two seconds of rows."""


def stream(seconds: int) -> pd.DataFrame:
    """Rows in the order of their arrival, with the stream's own heartbeat in the last row of every second."""
    draw = np.random.default_rng(2012)
    rows = seconds * RATE_PER_S
    sent = np.sort(draw.uniform(0.0, seconds, rows))
    late = MEDIAN_S * draw.lognormal(0.0, 0.5, rows)
    late[(sent > seconds / 3) & (sent < 2 * seconds / 3)] *= 3.0
    order = np.argsort(sent + late, kind="stable")
    ts, arrived = sent[order], (sent + late)[order]
    to_come = np.append(np.minimum.accumulate(ts[::-1])[::-1][1:], np.inf)
    last = np.append(np.diff(arrived.astype(int)) > 0, False)
    beat = pd.Series(pd.NaT, index=range(rows), dtype="datetime64[us, UTC]")
    beat[last] = _time(to_come[last])
    return pd.DataFrame({"ts": _time(ts), "arrived": _time(arrived), "beat": beat})


def _time(seconds: Any) -> Any:
    return pd.to_datetime(START_S + seconds, unit="s", utc=True).round("us").as_unit("us")


def write(data: pd.DataFrame, folder: Path) -> None:
    """One file per second of arrivals."""
    folder.mkdir(parents=True)
    for number, (_, part) in enumerate(data.groupby(data["arrived"].dt.floor("s"))):
        file = folder / f"{number:05d}.parquet"
        part.to_parquet(file, coerce_timestamps="us", index=False)
        os.utime(file, (START_S + number, START_S + number))


def run(spark: Any, method: str, ratio: str, inbox: Path, folder: Path) -> dict[str, Any]:
    """One method over the stream; its ledger and mean wait."""
    import slackwater as sw

    reader = spark.readStream.schema("ts timestamp, arrived timestamp, beat timestamp").option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(inbox))
    sw.stream("Readings", events, event_time="ts")
    own = method == "source-heartbeat"
    control = "HEARTBEAT beat" if own else f"DRATIO {ratio}"
    text = f"SELECT COUNT(*) FROM Readings [RANGE 10 seconds SLIDE 10 seconds ARRIVAL arrived {control}]"
    chosen = None if own else sw.Method(method, **OPTIONS.get(method, {}))
    counted = sw.sql(spark, text, method=chosen, name=method, location=str(folder))
    writer = counted.writeStream.format("noop").option("checkpointLocation", str(folder / "at"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    (promise,) = sw.report(query).completeness
    assert promise.ledger.exact
    return {
        "method": method,
        "late": promise.ledger.late,
        "rows": promise.ledger.input,
        "wait_s": (promise.mean_wait_ms or 0.0) / 1e3,
    }


def main() -> None:
    """Run all methods and print a table."""
    from slackwater.control.disorder import method_names
    from slackwater.spark.command.session import local_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--ratio", default="1%")
    parser.add_argument("--methods", default=",".join(method_names()))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, local_session("methods") as spark:
        write(stream(options.seconds), Path(scratch) / "in")
        found = []
        for method in options.methods.split(","):
            found.append(run(spark, method, options.ratio, Path(scratch) / "in", Path(scratch) / method))
            if not options.json:
                one = found[-1]
                print(f"{method:<20}{one['late'] / one['rows']:>9.3%}{one['wait_s']:>9.2f} s", flush=True)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
