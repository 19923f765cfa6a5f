"""A standing query over the join of two windowed streams gives exact answers at the times it is evaluated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.language import parse
from slackwater.spark.standing.sql import standing_query
from tests.helpers.harness import FileStream
from tests.helpers.standing import SCHEMA, micro_batches, run_batches

pytestmark = [pytest.mark.spark, pytest.mark.full]


def test_an_average_over_joined_streams(spark: SparkSession, tmp_path: Path) -> None:
    batches = micro_batches(23, warm_up=20)
    draw = np.random.default_rng(4)
    spreads: dict[tuple[str, str], float] = {}
    streams = {name: FileStream(spark, tmp_path / name, SCHEMA) for name in ("Asked", "Offered")}
    for batch in batches:
        asked = []
        for row in batch:
            spreads[row["symbol"], row["ts"]] = float(draw.uniform(1, 2))
            asked.append({**row, "price": row["price"] + spreads[row["symbol"], row["ts"]]})
        streams["Asked"].put(asked)
        streams["Offered"].put(batch)
    for name, stream in streams.items():
        sw.stream(name, stream.read_stream(), event_time="ts")
    joined = sw.sql(
        spark,
        "SELECT a.symbol, a.ts, a.price - o.price AS spread FROM Asked [RANGE 1 second DRATIO 1%] AS a "
        "JOIN Offered [RANGE 1 second DRATIO 1%] AS o ON a.symbol = o.symbol",
        name="spreads",
        location=str(tmp_path / "promises"),
    )
    sw.stream("Spreads", joined, key="symbol", event_time="ts", value="spread")
    (tmp_path / "clock").write_text("0")
    text = "SELECT AVG(spread) AS mean FROM Spreads WITHIN 5% CONFIDENCE 90%"
    answers = standing_query(
        spark, parse(text), location=str(tmp_path / "standing"), _clock_file=str(tmp_path / "clock")
    )
    query = run_batches(spark, tmp_path, answers)
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("mean", "unix_millis(at) AS ms").collect()
    assert found
    for answer in found:
        last = {
            symbol: value for (symbol, ts), value in spreads.items() if pd.Timestamp(ts).value <= answer["ms"] * 10**6
        }
        assert answer["mean"] == pytest.approx(float(np.mean(list(last.values()))), rel=1e-9)
    report = sw.report(query)
    assert report.precision[0].ledger.input == len(spreads)
    assert [promise.ledger.input for promise in report.completeness] == [len(spreads)] * 2
