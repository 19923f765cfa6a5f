"""A promised table in a declarative pipeline (``spark-pipelines``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.harness import SCHEMA, FileStream, batches
from tests.helpers.processes import environment
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.full]
MADE = batches(seed=3, count=6)
SPEC = """name: promised
storage: file://{root}/storage
libraries: [{{glob: {{include: transformations/**}}}}]
configuration: {{spark.sql.shuffle.partitions: "1", spark.sql.session.timeZone: UTC}}
"""
PROMISE = """sw.with_drop_ratio(
    spark.readStream.schema("{schema}").option("maxFilesPerTrigger", 1).json("{root}/in"),
    "ts", "5%", arrival="arrived", name="piped", location="{root}/promises", min_wait="20 seconds",
)"""
TABLE = """from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F
import slackwater as sw

spark = SparkSession.active()
promised = {outside}

@dp.table
def counts():
    events = {inside}
    return events.groupBy(F.window("ts", "5 seconds"), "sensor").count()
"""


def run_pipeline(root: Path, outside: str, inside: str) -> subprocess.CompletedProcess[str]:
    (root / "transformations").mkdir(exist_ok=True)
    (root / "spark-pipeline.yml").write_text(SPEC.format(root=root))
    table = TABLE.format(outside=outside, inside=inside).replace("PROMISE", PROMISE.format(root=root, schema=SCHEMA))
    (root / "transformations" / "counts.py").write_text(table)
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run", "--spec", "spark-pipeline.yml"]
    return subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True, check=False)


@usage(
    "a table of a declarative pipeline (`spark-pipelines` of Spark 4.3) over a promise made outside its function",
    "not usable: the command ends with `[UNKNOWN_RESPONSE]`, since its client does not know what Spark reports of a "
    "Python source. Run the query as a job with `AvailableNow`",
)
def test_a_promise_outside_the_function_of_a_table(tmp_path: Path) -> None:
    """The query itself starts; the client of the pipeline fails on a report of Spark, and stops it."""
    stream: Any = FileStream
    rows = stream(None, tmp_path / "in")
    for batch in MADE:
        rows.put(batch)
    ran = run_pipeline(tmp_path, "PROMISE", "promised")
    assert ran.returncode != 0
    assert "UNKNOWN_RESPONSE" in ran.stdout + ran.stderr


@usage(
    "a promise made inside the function of such a table",
    "refused by Spark (`[ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION]`), which says to make it outside",
)
def test_a_promise_inside_the_function_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    ran = run_pipeline(tmp_path, "None", "PROMISE")
    assert ran.returncode != 0
    assert "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" in ran.stderr + ran.stdout
