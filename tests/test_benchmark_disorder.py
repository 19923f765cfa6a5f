"""The disorder benchmark runs, counts every cell, and resumes from its file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from slackwater.sim.streams import stream_names


def test_cells_are_counted_and_resumed(tmp_path: Path) -> None:
    bench: Any = importlib.import_module("disorder")
    tasks = bench.all_tasks(None, tmp_path, ("max-delay", "fixed-slack"), 2, 200)
    reported = [stream for stream in stream_names() if stream != "drawn"]  # constants are chosen on that one
    assert [task[1] for task in tasks] == [f"{stream}:{seed}" for seed in range(2) for stream in reported]
    one = next(task for task in tasks if task[1] == "kim2007:0")
    done, cells = bench.run_task(one)
    assert done == one
    assert len(cells) == 6
    keep = tmp_path / "kept.jsonl"
    keep.write_text(bench.as_line(one, cells) + "\n")
    assert list(bench.finished([one], 1, keep)) == [(one, cells)]
    results = {
        name: [("generated", one[1], c) for c in cells if c.method == name] for name in ("max-delay", "fixed-slack")
    }
    lines = bench.summary(results)
    assert [line["generated_cells"] for line in lines] == [3, 3]
    assert all(line["real_cells"] == 0 for line in lines)


def test_cells_under_sparks_conditions_have_a_best_constant(tmp_path: Path) -> None:
    bench: Any = importlib.import_module("disorder")
    tasks = bench.all_tasks("generated", tmp_path, ("max-delay",), 1, 200, (1.0, 4.0))
    _, cells = bench.run_task(next(task for task in tasks if task[1] == "kim2007:0"))
    assert [cell.target_drop_ratio for cell in cells] == [0.05, 0.05, 0.01, 0.01, 0.001, 0.001]
    assert all(cell.best_constant_wait is not None for cell in cells)
