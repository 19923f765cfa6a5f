"""What Python workers import stays light, the project names no machine, and the bare wheel keeps the one-line promise.

Style, types and the direction of imports are checked by ``make check``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.bare_environment import bare_environment, environment_without_paths

ROOT = Path(__file__).parents[1]
WORKER = ROOT / "src" / "slackwater" / "spark" / "worker"
# A shard of standing queries evaluates sparse matrices.
NEEDS_SCIPY = {"standing_step", "weights_table"}
PROMISE = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
import slackwater as sw

absent = ("bokeh", "click", "matplotlib", "prometheus_client", "rich", "tornado")
for name in absent:
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is no core dependency, and can be imported")

root = Path(sys.argv[1])
(root / "in").mkdir()
for batch in range(4):
    stamps = [f"2024-01-01T00:00:{10 * batch + i:02d}Z" for i in range(10)]
    (root / "in" / f"{batch}.json").write_text("".join('{"ts": "%s"}\\n' % stamp for stamp in stamps))
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.sql.session.timeZone", "UTC")
with builder.config("spark.driver.host", "127.0.0.1").getOrCreate() as spark:
    rows = spark.readStream.schema("ts timestamp").option("maxFilesPerTrigger", 1).json(str(root / "in"))
    events = sw.with_drop_ratio(rows, "ts", 0.01)
    writer = events.groupBy(F.window("ts", "5 seconds")).count().writeStream.format("memory").queryName("counts")
    query = writer.outputMode("append").option("checkpointLocation", str(root / "checkpoint")).start()
    query.processAllAvailable()
    report = sw.report(query)
    query.stop()
    print(report.ledger.input, report.ledger.late, report.ledger.exact, str(report).count("DRATIO 1%"))
"""


def test_worker_modules_import_neither_sqlglot_nor_scipy() -> None:
    names = [path.stem for path in WORKER.glob("*.py") if path.stem not in {"__init__", *NEEDS_SCIPY}]
    imports = ", ".join(f"slackwater.spark.worker.{name}" for name in names)
    script = f"import sys, {imports}; print([name for name in ('sqlglot', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.full
@pytest.mark.spark
def test_the_bare_wheel_keeps_the_one_line_promise(tmp_path: Path) -> None:
    python = bare_environment(ROOT, tmp_path)
    ran = subprocess.run(
        [python, "-c", PROMISE, str(tmp_path)],
        cwd=tmp_path,
        env=environment_without_paths(python),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["40", "0", "True", "1"]


def test_the_project_names_no_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    machine = ["/" + name + "/" for name in ("work", "root", "home")]
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".sh", ".yml", ".yaml", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not any(place in text for place in machine), name
