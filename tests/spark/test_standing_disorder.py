"""Standing queries over a disordered stream: DRATIO, DELAY and WITHIN together, compared with a batch job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.errors import InvalidOption, QueryTextError
from slackwater.language import parse
from slackwater.spark.standing.sql import standing_query
from tests.helpers.harness import ORIGIN_S, FileStream, settle
from tests.helpers.standing import iso

pytestmark = pytest.mark.spark

SCHEMA = "symbol string, ts timestamp, arrived timestamp, price double"
SECONDS, LATE = 48, 6


@pytest.fixture
def waiting_ten_seconds(spark: SparkSession) -> Any:
    """The heartbeat waits at least ten seconds, so rows that come three seconds late are on time."""
    spark.conf.set("spark.slackwater.minWait", "10 seconds")
    yield
    spark.conf.unset("spark.slackwater.minWait")


def rows_in_order_of_arrival() -> list[dict[str, Any]]:
    """A row per second and stream, up to three seconds late; some that come when they are over; some without a time."""
    draw = np.random.default_rng(6)
    rows = []
    for number in range(3):
        values = np.cumsum(draw.standard_normal(SECONDS))
        for second, price in enumerate(values):
            at_ms = 1000 * (ORIGIN_S + second) + 7 * number
            late = number == 1 and second in range(2, 2 + LATE)
            arrived_ms = at_ms + (40_000 if late else round(float(draw.uniform(0, 3000))))
            row = {"symbol": f"s{number}", "ts": iso(at_ms), "arrived": iso(arrived_ms), "price": float(price)}
            rows.append({**row, "arrived_ms": arrived_ms, "at_ms": at_ms, "late": late})
    end_ms = 1000 * (ORIGIN_S + SECONDS)
    rows.append({"symbol": "s0", "ts": None, "arrived": iso(end_ms), "price": 1.0, "arrived_ms": end_ms, "late": True})
    return sorted(rows, key=lambda row: row["arrived_ms"])


def run_in_halves(spark: SparkSession, root: Path, rows: list[dict[str, Any]], build: Any) -> Any:
    """Four seconds of arrivals per micro-batch, with a restart in the middle; returns the query."""
    start_ms = rows[0]["arrived_ms"]
    stream = FileStream(spark, root / "in", SCHEMA)
    (root / "clock").write_text("0")
    batches: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        shown = {name: row[name] for name in ("symbol", "ts", "arrived", "price")}
        batches.setdefault((row["arrived_ms"] - start_ms) // 4000, []).append(shown)
    every = [batches[at] for at in sorted(batches)]
    for half in (every[: len(every) // 2], every[len(every) // 2 :]):
        for batch in half:
            stream.put(batch)
        query = (
            build(stream.read_stream())
            .writeStream.format("parquet")
            .option("path", str(root / "out"))
            .option("checkpointLocation", str(root / "checkpoint"))
            .start()
        )
        try:
            settle(query)
        finally:
            query.stop()
    return query


def in_batch(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows that are not late, in the order of their times."""
    on_time = pd.DataFrame([row for row in rows if not row["late"]])
    return on_time.sort_values("at_ms", ignore_index=True)


def check_ledgers(report: Any, rows: list[dict[str, Any]]) -> None:
    (precision,), (completeness,) = report.precision, report.completeness
    late = sum(row["late"] and row["ts"] is not None for row in rows)
    ledger, counts = completeness.ledger, precision.counts
    assert (ledger.late, ledger.invalid, ledger.input) == (late, 1, len(rows))
    assert counts.used + counts.waiting == ledger.on_time == len(rows) - late - 1
    assert (counts.out_of_order, counts.invalid) == (0, 0), "rows are taken in the order of their times"
    assert counts.used > 0
    assert counts.waiting > 0


@pytest.mark.parametrize("delay", ["", "DELAY 1000 weeks "])
def test_dratio_and_delay_with_within_in_one_text(
    delay: str, spark: SparkSession, tmp_path: Path, waiting_ten_seconds: None
) -> None:
    rows = rows_in_order_of_arrival()
    text = (
        f"SELECT symbol, SUM(price) AS value FROM Prices [DRATIO 5% {delay}ARRIVAL arrived] GROUP BY symbol "
        "WITHIN 0.5 CONFIDENCE 90%"
    )

    def build(events: Any) -> Any:
        sw.stream("Prices", events, key="symbol", event_time="ts", value="price")
        return standing_query(
            spark, parse(text), name=tmp_path.name, location=str(tmp_path / "sw"), _clock_file=str(tmp_path / "clock")
        )

    query = run_in_halves(spark, tmp_path, rows, build)
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("*", "unix_micros(at) / 1e3 AS ms").toPandas()
    exact = in_batch(rows)
    assert len(found) > 20
    for symbol, ms, value in found[["symbol", "ms", "value"]].itertuples(index=False):
        assert value == exact[(exact["symbol"] == symbol) & (exact["at_ms"] <= ms)]["price"].iloc[-1]
    report = sw.report(query)
    check_ledgers(report, rows)
    assert len(report.timeliness) == (1 if delay else 0)
    for promise in report.timeliness:
        assert promise.ledger.input == len(rows) and promise.ledger.shed == 0


def test_a_windowed_maximum_over_a_disordered_stream_in_python(
    spark: SparkSession, tmp_path: Path, waiting_ten_seconds: None
) -> None:
    rows = rows_in_order_of_arrival()
    (tmp_path / "weights").mkdir()
    pd.DataFrame({"query": ["sum"] * 3, "symbol": ["s0", "s1", "s2"], "weight": [1.0, 2.0, -1.0]}).to_parquet(
        tmp_path / "weights" / "weights.parquet"
    )

    def build(events: Any) -> Any:
        return sw.standing(
            events, key="symbol", event_time="ts", value="price", weights=str(tmp_path / "weights"),
            within=0.5, confidence=0.9, aggregate="max", window="5 seconds", drop_ratio="5%", arrival="arrived",
            shards=2, name=tmp_path.name, location=str(tmp_path / "sw"), _clock_file=str(tmp_path / "clock"),
        )  # fmt: skip

    query = run_in_halves(spark, tmp_path, rows, build)
    exact = in_batch(rows)
    values = exact.pivot(index="at_ms", columns="symbol", values="price").ffill().dropna()
    sums = values["s0"] + 2.0 * values["s1"] - values["s2"]
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("unix_micros(at) / 1e3 AS ms", "value").toPandas()
    answered = found.dropna()
    assert len(answered) > 5
    for ms, value in answered.itertuples(index=False):
        known = values.index <= ms
        start = np.searchsorted(values.index, ms - 5000.0)
        window = sums[known].to_numpy()[min(start, known.sum() - 1) :]
        assert value == pytest.approx(window.max(), rel=1e-12)
    check_ledgers(sw.report(query), rows)


def test_what_has_no_effect_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in", SCHEMA).read_stream()
    sw.stream("Prices", stream, key="symbol", event_time="ts", value="price")
    text = "SELECT SUM(price) FROM Prices [{}] WITHIN 1 CONFIDENCE 90%"
    for clause in ("ARRIVAL arrived", "SOURCE symbol DELAY 2 seconds", "SLACK 5 DRATIO 1%", "DRATIO 1% LATE ROWS"):
        with pytest.raises(QueryTextError, match="not-standing"):
            sw.sql(spark, text.format(clause))
    with pytest.raises(InvalidOption, match="option-not-used"):
        sw.sql(spark, text.format("DELAY 2 seconds"), method="max-delay")
    with pytest.raises(InvalidOption, match="option-not-used"):
        sw.sql(spark, text.format("DRATIO 1%"), law="ctrl")
    with pytest.raises(InvalidOption, match="option-not-used"):
        sw.standing(
            stream, key="symbol", event_time="ts", value="price", weights=str(tmp_path), within=1.0, confidence=0.9,
            arrival="arrived",
        )  # fmt: skip
