"""Delta tables as sinks of a promise, on the versions of Spark that Delta has."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import REPOSITORY, environment
from tests.helpers.usages import usage

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(importlib.util.find_spec("delta") is None, reason="no Delta: make delta SPARK=4.1"),
]
JARS = Path(sys.prefix, "delta")


@usage(
    "a Delta table as sink, and `MERGE` into one in `foreachBatch`, each restarted (tried on Spark 4.1)",
    "right: windows equal a batch job's, each once, and the ledger is exact",
)
def test_delta_sink_and_merge(tmp_path: Path) -> None:
    jars = [str(jar) for jar in sorted(JARS.glob("*.jar"))]
    command = [sys.executable, "-m", "tests.helpers.delta_usage", str(tmp_path), *jars]
    ran = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
