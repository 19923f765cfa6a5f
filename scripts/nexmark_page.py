"""Runs Nexmark's queries on Spark and writes docs/nexmark.md.

``python scripts/nexmark_page.py`` takes a few minutes. It exits with 1 if a result differs from its batch.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conftest import SETTINGS
from tests.helpers.controllers import registered
from tests.nexmark.page import PAGE, page
from tests.nexmark.suite import NUMBERS, Suite


def main() -> None:
    """Run every query and write the page."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = {}
    with registered(), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        suite = Suite(spark, Path(folder))
        for number in NUMBERS:
            outcome = suite.run(number)
            rows[number] = len(outcome.streamed), outcome.streamed == outcome.batch
            print(f"q{number}: {rows[number]}", flush=True)
        spark.stop()
    PAGE.write_text(page(rows), encoding="utf-8")
    sys.exit(0 if all(equal for _, equal in rows.values()) else 1)


if __name__ == "__main__":
    main()
