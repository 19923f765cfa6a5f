"""Plans and runs the queries that the papers print, and compares their results with a batch job.

The streams are generated: one row per second for twenty minutes, twenty seconds late on average, in 24 micro-batches.
Rows of standing queries are in order, as their paper assumes. The query with a DELAY reads twenty rows per second for a
minute, in real time. Every query gets an ARRIVAL, because the twenty minutes pass in seconds, and LATE ROWS, so that
the batch job can leave a late row out of the windows that it missed. With SLACK the late rows are those of the per-row
method. Answers of standing queries are compared with the batch's at the same instant.

``--wrong`` prints only the errors of ten wrong queries, ``--explain`` only the plans; both run without Spark.
``--write`` writes errors, plans and, after a run, results to the docs pages.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from papers_batches import BATCHES, CATALOG, WRONG
from slackwater.errors import SlackwaterError
from slackwater.language import Late, Query, parse, parse_script
from slackwater.plan import explain, explain_standing, make_plan

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "tests" / "language" / "papers"
PAGE, LANGUAGE = ROOT / "docs" / "papers" / "queries.md", ROOT / "docs" / "language.md"
ROWS, FILES, SHOWN = 1200, 24, 3
LIVE_PER_S = 20
WRONG_RESULT = "NOT THE BATCH'S"
STREAM_NAME_LOCK = threading.Lock()  # several queries register a stream under the same name
START_S = 1_087_516_800  # 18 June 2004
TITLES = {
    "kim2007": "Kim 2007",
    "kim2010": "Kim 2010",
    "kim2012": "Kim 2012",
    "tu2006": "Tu 2006",
    "zhu2004": "Zhu 2004",
}
INTRODUCTION = """# The papers' queries

These are all queries that the five papers print, unchanged, and two that the papers describe in words. Each comes with
its plan (`slackwater explain`). `make bench-queries` runs them on Spark and compares the results with a batch job of
plain Spark. `python benchmarks/papers_queries.py --write` writes this page."""
COMPARED = """The results are from one row per second for twenty minutes, twenty seconds late on average, in 24
micro-batches; those of standing queries are in order, as their paper assumes. The query with a DELAY reads twenty rows
per second in real time. A batch job over the same rows leaves every late row out of the windows that it missed. It
takes the late rows from `LATE ROWS`, and with `SLACK` from the method applied row by row; the ledger has as many."""


@dataclass(frozen=True)
class Printed:
    """A query of a paper: its text, the parsed query, and the batch query that must give the same result."""

    paper: str
    number: int
    text: str
    query: Query
    batch: str

    @property
    def title(self) -> str:
        """The paper and the number of the query."""
        return f"{TITLES[self.paper]}, query {self.number + 1}"

    @property
    def live(self) -> bool:
        """Whether the query promises a delay; such a query must read rows in real time."""
        return "DELAY" in self.text

    @property
    def slack_rows(self) -> int | None:
        """The rows of SLACK, which are judged one by one."""
        slack = self.query.windows[0][1].slack
        return None if slack is None else int(slack.amount)

    @property
    def plan(self) -> str:
        """The output of ``slackwater explain``."""
        if self.query.precision is not None:
            return explain_standing(self.query, CATALOG)
        return explain(make_plan(self.query, CATALOG))


def printed() -> list[Printed]:
    """All queries of all papers."""
    found = []
    for file in sorted(PAPERS.glob("*.sql")):
        texts = [text.strip("\n") for text in file.read_text(encoding="utf-8").split("\n;\n")]
        for number, (text, batch) in enumerate(zip(texts, BATCHES[file.stem], strict=True)):
            (query,) = parse_script(text)
            found.append(Printed(file.stem, number, text, query, batch))
    return found


def refusals() -> list[str]:
    """The error of each wrong query."""
    errors = []
    for text in WRONG:
        try:
            make_plan(parse(text), CATALOG)
        except SlackwaterError as error:
            errors.append(str(error))
        else:
            errors.append(f"NOT REFUSED: {text}")
    return errors


def streams() -> dict[str, pd.DataFrame]:
    """The rows of every stream, in arrival order."""
    rng = np.random.default_rng(2012)
    arrived = np.arange(ROWS, dtype=float)
    late, little_late = rng.exponential(20.0, ROWS), np.minimum(rng.exponential(1.0, ROWS), 8.0)
    ts = pd.to_datetime(START_S + arrived - late, unit="s", utc=True).round("us")
    wave = (50 + 20 * np.sin(arrived / 60) + rng.normal(0, 2, ROWS)).round(1)
    ids = np.argsort(np.argsort(arrived + rng.exponential(20.0, ROWS), kind="stable"), kind="stable")
    times = pd.to_datetime(START_S + arrived, unit="s", utc=True)
    live = pd.to_datetime(START_S + arrived / LIVE_PER_S - little_late, unit="s", utc=True).round("us")
    sensors = [f"s{i % 4}" for i in range(ROWS)]
    return {
        "Traffic": pd.DataFrame({"timestamp": ts, "speed": wave, "arrived": times}),
        "Sensors": pd.DataFrame({"ts": ts, "sensor": sensors, "value": wave, "arrived": times}),
        "Services": pd.DataFrame({"orderID": ids, "serviceTime": wave}),
        "Packets": pd.DataFrame({"ts": live, "size": wave}),
        "Portfolio": pd.DataFrame({"ts": times, "value": wave}),
        "Floor2": pd.DataFrame({"ts": times, "average": wave}),
    }


class Inbox:
    """A folder that a streaming query reads, one file per micro-batch."""

    def __init__(self, spark: Any, data: pd.DataFrame, folder: Path, *, live: bool = False) -> None:
        self.folder, self._inbox, self._live = folder, folder / "in", live
        self._inbox.mkdir(parents=True)
        files = ROWS // LIVE_PER_S if live else FILES
        self.parts = [data.iloc[part] for part in np.array_split(np.arange(len(data)), files)]
        self.put(0)
        self.schema = spark.read.parquet(str(self._inbox)).schema
        reader = spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        self.stream = reader.parquet(str(self._inbox))

    def put(self, number: int) -> None:
        """Add one file; the rows of a live stream are shifted to the second that ends now."""
        hidden = self.folder / f"{number}.parquet"
        part = self.parts[number]
        if self._live:
            since = pd.to_timedelta(time.time() - (START_S + number + 1), unit="s").round("us")
            part = part.assign(ts=part["ts"] + since)
        part.to_parquet(hidden, coerce_timestamps="us", index=False)
        hidden.rename(self._inbox / hidden.name)

    def with_shed_ratio(self, ratios: list[float]) -> pd.DataFrame:
        """All rows, each with the shed ratio of its micro-batch."""
        assert len(ratios) == len(self.parts), f"{len(self.parts)} files, {len(ratios)} micro-batches"
        files = [pd.read_parquet(self._inbox / f"{number}.parquet") for number in range(len(ratios))]
        rows = pd.concat([rows.assign(shed_ratio=ratio) for rows, ratio in zip(files, ratios, strict=True)])
        return rows.assign(ts=rows["ts"].dt.tz_localize(None))  # like the timestamps of Spark's toPandas

    def everything(self, spark: Any) -> Any:
        """All rows as a batch DataFrame."""
        return spark.read.schema(self.schema).parquet(str(self._inbox))

    def start(self, result: Any) -> Any:
        """Start the query with a Parquet sink."""
        writer = result.writeStream.format("parquet").option("path", str(self.folder / "out"))
        return writer.option("checkpointLocation", str(self.folder / "at")).start()

    def published(self, spark: Any, result: Any) -> Any:
        """The rows that the query wrote."""
        return spark.read.schema(result.schema).parquet(str(self.folder / "out"))


def results(spark: Any, one: Printed, data: pd.DataFrame, folder: Path) -> str:
    """Run a query; report its last results, whether they equal the batch's, and the ledger."""
    import slackwater as sw
    from equality import same
    from shed_counts import compare_counts, shed_ratios

    inbox = Inbox(spark, data, folder, live=one.live)
    running, result, promise, ledger = _run_to_end(spark, one, data, inbox)
    published = inbox.published(spark, result)
    everything = inbox.everything(spark)
    if one.slack_rows is None:
        found, late, heartbeat = sw.on_time(published), sw.late_rows(published), promise.heartbeat
    else:
        found, (late, heartbeat) = published, _late_by_slack(spark, data, one.slack_rows)
        everything = everything.join(late, everything.columns[0], "left_anti")
    batch = _batch_results(spark, one, everything, late, heartbeat, found.columns)
    assert one.live or ledger.late == late.count(), f"{ledger.late} late in the ledger, {late.count()} expected"
    table = found.toPandas().sort_values("window_end")
    if ledger.shed and len(table):
        counts = compare_counts(table, batch.toPandas(), inbox.with_shed_ratio(shed_ratios(running)))
        verdict = WRONG_RESULT if counts.wrong else str(counts)
    else:
        verdict = "the same as the batch's, row for row" if len(table) and same(found, batch) else WRONG_RESULT
    return (
        f"{len(table)} results, {verdict}; the last {SHOWN}:\n\n{table.tail(SHOWN).to_string(index=False)}\n\n"
        f"{ledger.input} rows = {ledger.on_time} on time + {ledger.late} late + {ledger.shed} shed"
        f" + {ledger.invalid} invalid"
    )


def _late_by_slack(spark: Any, data: pd.DataFrame, slack_rows: int) -> tuple[Any, pd.Timestamp]:
    """The rows that are late if every row is judged by itself, and the last heartbeat."""
    from slackwater.control.disorder import make_method
    from slackwater.promises import Completeness

    at_us = data.iloc[:, 0].astype("datetime64[us, UTC]").astype("int64").to_numpy()
    method: Any = make_method("fixed-slack", Completeness(0.0), slack_rows=slack_rows)
    heartbeats_us = method.trail((at_us - at_us[0]).astype(float), None) + at_us[0]
    late = data[np.append(False, at_us[1:] < heartbeats_us[:-1])]
    window = "array<struct<window_start: timestamp, window_end: timestamp>>"
    frame = spark.createDataFrame(late).selectExpr("*", f"CAST(array() AS {window}) AS missed")
    return frame, pd.Timestamp(int(heartbeats_us[-1]), unit="us", tz="UTC")


def _run_to_end(spark: Any, one: Printed, data: pd.DataFrame, inbox: Inbox) -> tuple[Any, Any, Any, Any]:
    """Stream all files through the query; return the stopped query, its DataFrame, its promise and its ledger."""
    import slackwater as sw
    from equality import settled
    from slackwater.spark.windows.options import QueryOptions
    from slackwater.spark.windows.sql import run_query

    arrival = "arrived" if "arrived" in data else None
    late = Late.ROWS if one.slack_rows is None else None
    query = dataclasses.replace(
        one.query,
        windows=tuple((at, dataclasses.replace(w, late=late, arrival=arrival)) for at, w in one.query.windows),
    )
    with STREAM_NAME_LOCK:
        sw.stream(one.query.windowed()[0][0].name, inbox.stream, event_time=data.columns[0])
        options = QueryOptions(name=inbox.folder.name, location=str(inbox.folder / "promise"))
        result = run_query(spark, query, options)
    running = inbox.start(result)
    try:
        settled(running)  # the start of a query takes long; live rows come after it
        for number in range(1, len(inbox.parts)):
            inbox.put(number)
            if one.live:
                running.awaitTermination(1)
            else:
                settled(running)
        promise = settled(running)
        ledger = sw.report(running).ledger
    finally:
        running.stop()
    return running, result, promise, ledger


def _batch_results(spark: Any, one: Printed, everything: Any, late: Any, heartbeat: Any, columns: list[str]) -> Any:
    """The batch job's results for the windows that are closed at ``heartbeat``, without the rows they missed."""
    from pyspark.sql import functions as F

    from equality import NUMBER_ORIGIN

    views = {
        "all": everything,
        "missed": late.selectExpr("*", "explode(missed) AS w").selectExpr("*", "w.window_end"),
        "kept": everything.join(late, everything.columns[0], "left_anti"),
    }
    names = {view: f"{view}_{one.paper}_{one.number}" for view in views}
    for view, frame in views.items():
        frame.createOrReplaceTempView(names[view])
    edge = F.lit(heartbeat)
    if "orderID" in everything.columns:
        edge = F.lit(round(heartbeat.timestamp() * 1000) - NUMBER_ORIGIN)
    closed = F.col("window_end") <= edge if "SLIDE" in one.text else F.col("window_end") < edge
    return spark.sql(one.batch.format(**names)).where(closed).select(*columns)


def answers(spark: Any, one: Printed, data: pd.DataFrame, folder: Path) -> str:
    """Run a standing query; report its last answers, and how many are within their bound of the batch's."""
    import slackwater as sw
    from slackwater.spark.standing.sql import standing_query
    from slackwater.spark.worker.mailbox import replace

    assert one.query.precision is not None
    inbox = Inbox(spark, data.assign(ts=data["ts"].dt.round("s")), folder)
    value = data.columns[1]
    clock = folder / "clock"
    clock.write_text("0")
    with STREAM_NAME_LOCK:
        sw.stream(one.query.windowed()[0][0].name, inbox.stream, event_time="ts", value=value)
        result = standing_query(spark, one.query, location=str(folder / "promise"), _clock_file=str(clock))
    running = inbox.start(result)
    try:
        for number in range(FILES):
            if number:
                inbox.put(number)
            running.processAllAvailable()
            replace(clock, str(int(inbox.parts[number]["ts"].max().timestamp() * 1000)))
            running.processAllAvailable()
    finally:
        running.stop()
    table = inbox.published(spark, result).toPandas().sort_values("at")
    rows, instants = f"all_{one.paper}_{one.number}", f"instants_{one.paper}_{one.number}"
    inbox.everything(spark).createOrReplaceTempView(rows)
    aggregate = "MAX" if "MAX" in one.text else "MIN"
    spark.createDataFrame(pd.DataFrame({"at": table["at"].unique()})).createOrReplaceTempView(instants)
    exact = spark.sql(
        f"SELECT at, {aggregate}({value}) AS exact FROM {instants} JOIN {rows} "
        "ON ts <= at AND ts > at - INTERVAL 1 HOUR AND ts >= timestamp'2004-06-18 00:00:00 UTC' GROUP BY at"
    ).toPandas()
    both = table.merge(exact, on="at")
    # With a silent stream the bound is wider: the answer says by how much.
    within = int(((both["value"] - both["exact"]).abs() <= both["error_bound"]).sum())
    return (
        f"{len(table)} answers to {ROWS} rows, {within} of {len(both)} within their bound of the batch's at that "
        f"instant; the last {SHOWN}:\n\n{table.tail(SHOWN).to_string(index=False)}"
    )


def run(spark: Any, one: Printed, data: dict[str, pd.DataFrame], scratch: Path) -> str:
    """Run a query and return the text of its results."""
    report = results if one.query.precision is None else answers
    return report(spark, one, data[one.query.windowed()[0][0].name], scratch / f"{one.paper}-{one.number}")


def write(outcomes: list[str] | None) -> None:
    """Write plans, errors and, if the queries were run, results to the docs pages."""
    parts = [INTRODUCTION if outcomes is None else f"{INTRODUCTION}\n\n{COMPARED}"]
    for number, one in enumerate(printed()):
        parts += [f"\n## {one.title}\n", f"```sql\n{one.text}\n```\n", f"```text\n{one.plan}```"]
        parts += [f"\n```text\n{outcomes[number]}\n```"] if outcomes is not None else []
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")
    page = LANGUAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition("(`python benchmarks/papers_queries.py --wrong`):\n\n```text\n")
    after = rest.partition("\n```\n")[2]
    block = "\n\n".join(text.rstrip("\n") for text in refusals())
    LANGUAGE.write_text(
        f"{before}(`python benchmarks/papers_queries.py --wrong`):\n\n```text\n{block}\n```\n{after}", encoding="utf-8"
    )


def main() -> None:
    """Print plans and results of all queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="print only the errors of the ten wrong queries")
    parser.add_argument("--explain", action="store_true", help="print only the plans")
    parser.add_argument("--write", action="store_true", help="also write the docs pages")
    options = parser.parse_args()
    if options.wrong:
        print("\n\n".join(refusals()))
        sys.exit(1 if any(text.startswith("NOT REFUSED") for text in refusals()) else 0)
    if options.explain:
        for one in printed():
            print(f"-- {one.title}\n{one.plan}")
        if options.write:
            write(None)
        return
    from slackwater.spark.command.session import local_session

    data, outcomes = streams(), []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        local_session("papers-queries") as spark,
        ThreadPoolExecutor(4) as pool,
    ):
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 1000)  # ``shed_ratios`` needs all of them
        jobs = {one.title: pool.submit(run, spark, one, data, Path(scratch)) for one in printed() if not one.live}
        found = {title: job.result() for title, job in jobs.items()}
        for one in printed():
            # a live query has to keep up, so it runs alone
            outcomes.append(run(spark, one, data, Path(scratch)) if one.live else found[one.title])
            print(f"-- {one.title}\n{one.plan}\n{outcomes[-1]}\n", flush=True)
    if options.write:
        write(outcomes)
    sys.exit(1 if any(WRONG_RESULT in text for text in outcomes) else 0)


if __name__ == "__main__":
    main()
