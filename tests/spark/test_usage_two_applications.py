"""Two applications with a promise of one name in one folder: each keeps its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.helpers.harness import FileStream, collected, settle, start
from tests.helpers.processes import REPOSITORY, environment
from tests.helpers.usages import usage
from tests.spark.test_usages import MADE, counted, is_right, promised

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.usefixtures("known_controllers")]

OTHER = """
import sys
from pathlib import Path
from slackwater.spark.command.session import local_session
from tests.helpers.controllers import registered
from tests.helpers.harness import FileStream, collected, start
from tests.spark.test_usages import counted, feed, is_right, promised

root = Path(sys.argv[1])
with registered(), local_session("other") as spark:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    stream = FileStream(spark, root / "in-other")
    query = start(counted(promised(stream, name="same", location=str(root / "promises"))), root / "other")
    feed(query, stream)
    is_right(query, stream, collected(spark, root / "other"))
"""


@usage("two applications with a promise of one name in one folder", "right: each query has its own files")
def test_two_applications_in_one_folder(spark: SparkSession, tmp_path: Path) -> None:
    """The other application runs, from its first row to its last, between two micro-batches of this one."""
    stream = FileStream(spark, tmp_path / "in")
    query = start(counted(promised(stream, name="same", location=str(tmp_path / "promises"))), tmp_path)
    for batch in MADE[:2]:
        stream.put(batch)
        settle(query)
    other = [sys.executable, "-c", OTHER, str(tmp_path)]
    ran = subprocess.run(other, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for batch in MADE[2:]:
        stream.put(batch)
        settle(query)
    is_right(query, stream, collected(spark, tmp_path))
