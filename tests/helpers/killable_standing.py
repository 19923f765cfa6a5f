"""Runs standing queries in a process that a test kills: ``python -m tests.helpers.killable_standing ROOT [N]``.

With N, the sink of micro-batch N writes its rows, creates the file ``hanging`` and then waits to be killed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from slackwater.spark.command.session import local_session
from tests.helpers.standing import updates


def main(root: Path, hang_at: int | None) -> None:
    def write(result: DataFrame, batch: int) -> None:
        rows = [tuple(row) for row in result.selectExpr("portfolio", "unix_millis(at)", "value").collect()]
        (root / "out").mkdir(exist_ok=True)
        (root / "out" / f"{batch:03d}.json").write_text(json.dumps(rows))
        if batch == hang_at:
            (root / "hanging").touch()
            time.sleep(600)

    with local_session("killable", **{"spark.sql.shuffle.partitions": "1"}) as spark:
        query = (
            updates(spark, root)
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(root / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
        query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
