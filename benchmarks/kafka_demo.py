"""The readings of ``slackwater demo`` through a real Kafka broker, live, under ``slackwater run``.

A producer writes the readings into a topic of three partitions as they arrive, stamped with their arrival, while
``slackwater run`` reads the topic in another process. Printed is what its report says. `make kafka` downloads broker
and connector.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.helpers.kafka import Broker, Message, connector_jars

from slackwater.spark.worker.generator_source import Readings

TOPIC, PARTITIONS = "readings", 3
QUERY = """SELECT COUNT(*) AS n, AVG(value) AS mean
FROM Readings [RANGE 2 seconds SLIDE 2 seconds WATTR ts ARRIVAL timestamp DRATIO 1% LATE PANES]"""
SCHEMA = "ts TIMESTAMP, sensor INT, value DOUBLE"
_EACH_S = 0.25


def messages(readings: Readings, first: int, last: int) -> list[Message]:
    """The readings ``[first, last)``, by sensor over the partitions."""
    table = readings.table(first, last)
    arrived_us = np.asarray(table.column("arrived").cast(pa.int64()))
    times = np.datetime_as_string(np.asarray(table.column("ts").cast(pa.int64())).astype("M8[us]"), timezone="UTC")
    sensors, values = (np.asarray(table.column(name)) for name in ("sensor", "value"))
    return [
        Message(json.dumps({"ts": ts, "sensor": sensor, "value": value}), sensor % PARTITIONS, arrived // 1000)
        for ts, arrived, sensor, value in zip(
            times.tolist(), arrived_us.tolist(), sensors.tolist(), values.tolist(), strict=True
        )
    ]


def produce(broker: Broker, readings: Readings, command: subprocess.Popen[str]) -> int:
    """Write the readings as they arrive, until the last of them or the end of the command; how many there were."""
    written = 0
    while written < readings.rows and command.poll() is None:
        last = readings.arrived_by(time.time_ns() // 1000)
        broker.send(TOPIC, messages(readings, written, last))
        written = last
        time.sleep(_EACH_S)
    return written


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rate", type=int, default=10_000, help="rows per second")
    arguments.add_argument("--seconds", type=int, default=120, help="how long the readings last")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(Path(temporary) / "broker")
        broker.start()
        try:
            broker.create(TOPIC, PARTITIONS)
            query = Path(temporary) / "query.sql"
            query.write_text(QUERY)
            source = f"kafka://{broker.address}/{TOPIC}?schema={SCHEMA}"
            packages = [part for jar in connector_jars() for part in ("--package", jar)]
            command = [sys.executable, "-m", "slackwater.cli.entry", "run", str(query), "--source", source, *packages]
            lasts = str(options.seconds + 20)
            rows = options.rate * options.seconds
            with subprocess.Popen(
                [*command, "--seconds", lasts, "--sink", f"parquet:{temporary}/out", "--json"],
                stdout=subprocess.PIPE,
                text=True,
            ) as running:
                produced = produce(broker, Readings(options.rate, rows, time.time_ns() // 1000), running)
                output, _ = running.communicate()
        finally:
            broker.stop()
    report = json.loads(output.splitlines()[-1])
    (promise,) = report["completeness"]
    print(f"{produced:,} rows produced, {options.rate:,} per second; ledger {promise['ledger']}")
    wait_ms = promise["mean_wait_ms"]
    waited = "no row was judged by a heartbeat" if wait_ms is None else f"mean wait {wait_ms:,.0f} ms"
    print(f"{promise['verdict']}: {promise['drop_ratio']:.2%} late of 1%, {waited}")


if __name__ == "__main__":
    main()
