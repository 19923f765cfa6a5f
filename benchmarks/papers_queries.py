"""The papers' queries as printed: what ``explain`` says of each, and its results on Spark; and ten wrong queries.

The streams are small and made up here: a row a second for twenty minutes, up to eight seconds late, in eight
micro-batches. ``--wrong`` prints only the refusals, ``--explain`` only the plans; both without Spark.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slackwater.errors import SlackwaterError
from slackwater.language import parse, parse_script, print_query
from slackwater.plan import Catalog, explain, make_plan

PAPERS = Path(__file__).parents[1] / "tests" / "language" / "papers"
ROWS, FILES, SHOWN = 1200, 8, 3
CATALOG = Catalog.from_sql(
    """CREATE TABLE Traffic (timestamp TIMESTAMP, speed DOUBLE);
    CREATE TABLE Sensors (ts TIMESTAMP, sensor STRING, value DOUBLE);
    CREATE TABLE Services (orderID BIGINT, serviceTime DOUBLE);
    CREATE TABLE Packets (ts TIMESTAMP, size DOUBLE);
    CREATE TABLE Portfolio (ts TIMESTAMP, value DOUBLE);
    CREATE TABLE Floor2 (ts TIMESTAMP, average DOUBLE)"""
)
WRONG = (
    "SELECT MAX(value) FROM Sensors [RNGE 30 seconds]",
    "SELECT MAX(value) FROM Sensors [RANGE 30 parsecs]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 10 tuples]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes HEARTBEAT ts DRATIO 1%]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes DRATIO 100%]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes WATTR tss]",
    "SELECT MAX(value) FROM Sensors [RANGE 1 minute SLIDE 5 minutes]",
    "SELECT AVG(serviceTime) FROM Services [RANGE 100 WATTR orderID SLACK 5 seconds]",
    "SELECT MAX(value) FROM Sensors [RANGE 5 minutes LATE PANES]",
    "SELECT reflect('java.lang.System', 'exit', 1), COUNT(*) FROM Sensors [RANGE 5 minutes]",
)


def refusals() -> list[str]:
    """What is said of each wrong query."""
    said = []
    for text in WRONG:
        try:
            make_plan(parse(text), CATALOG)
        except SlackwaterError as error:
            said.append(str(error))
        else:
            said.append(f"NOT REFUSED: {text}")
    return said


def streams() -> dict[str, pd.DataFrame]:
    """The rows of every stream, in the order of their arrival."""
    rng = np.random.default_rng(2012)
    arrived = np.arange(ROWS, dtype=float)
    late = np.minimum(rng.exponential(1.0, ROWS), 8.0)
    ts = pd.to_datetime(1_087_516_800 + arrived - late, unit="s", utc=True).round("us")  # from 18 June 2004 on
    wave = (50 + 20 * np.sin(arrived / 60) + rng.normal(0, 2, ROWS)).round(1)
    ids = np.argsort(np.argsort(arrived + rng.uniform(0, 8, ROWS), kind="stable"), kind="stable")
    return {
        "Traffic": pd.DataFrame({"timestamp": ts, "speed": wave}),
        "Sensors": pd.DataFrame({"ts": ts, "sensor": [f"s{i % 4}" for i in range(ROWS)], "value": wave}),
        "Services": pd.DataFrame({"orderID": ids, "serviceTime": wave}),
        "Packets": pd.DataFrame({"ts": ts, "size": wave}),
        "Portfolio": pd.DataFrame({"ts": ts, "value": wave}),
        "Floor2": pd.DataFrame({"ts": ts, "average": wave}),
    }


def results(spark: Any, query: Any, data: pd.DataFrame, folder: Path) -> str:
    """Run one query over its stream; its last results and its ledger."""
    import slackwater as sw
    from slackwater.spark.query import run_query
    from slackwater.spark.report import report
    from slackwater.spark.supervisor import keepers_of

    table = query.windowed()[0][0].name
    inbox, out = folder / "in", folder / "out"
    inbox.mkdir(parents=True)
    parts = np.array_split(np.arange(len(data)), FILES)
    data.iloc[parts[0]].to_parquet(inbox / "0.parquet", coerce_timestamps="us")
    schema = spark.read.parquet(str(inbox)).schema
    sw.stream(table, spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(inbox)))
    made = run_query(spark, query, name=folder.name, location=str(folder / "promise"))
    writer = made.writeStream.format("parquet").option("path", str(out))
    running = writer.option("checkpointLocation", str(folder / "at")).start()
    try:
        for number, part in enumerate(parts):
            if number:
                hidden = folder / f"{number}.parquet"
                data.iloc[part].to_parquet(hidden, coerce_timestamps="us")
                hidden.rename(inbox / hidden.name)
            for _ in range(2):  # the rows, and the heartbeat that follows from them
                running.processAllAvailable()
                keepers_of(str(running.id), int(running.lastProgress["batchId"]), timeout_s=60)
            running.processAllAvailable()
        said = report(running)
    finally:
        running.stop()
    found = spark.read.schema(made.schema).parquet(str(out)).toPandas().sort_values("window_end")
    ledger = said.ledger
    return (
        f"{len(found)} results, the last {min(SHOWN, len(found))}:\n{found.tail(SHOWN).to_string(index=False)}\n"
        f"{ledger.input} rows = {ledger.on_time} on time + {ledger.late} late + {ledger.shed} shed"
        f" + {ledger.invalid} invalid"
    )


def main() -> None:
    """Print them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="only the ten wrong queries")
    parser.add_argument("--explain", action="store_true", help="only the plans")
    options = parser.parse_args()
    if options.wrong:
        print("\n\n".join(refusals()))
        sys.exit(1 if any(text.startswith("NOT REFUSED") for text in refusals()) else 0)
    queries = [(f.stem, q) for f in sorted(PAPERS.glob("*.sql")) for q in parse_script(f.read_text(encoding="utf-8"))]
    if options.explain:
        for paper, query in queries:
            print(f"-- {paper}\n{explain(make_plan(query, CATALOG))}")
        return
    from slackwater.spark.session import local_session

    data = streams()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, local_session("papers-queries") as spark:
        for number, (paper, query) in enumerate(queries):
            print(f"-- {paper}: {print_query(query)}")
            try:
                print(results(spark, query, data[query.windowed()[0][0].name], Path(scratch) / f"q{number}") + "\n")
            except SlackwaterError as error:
                print(f"{error}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
