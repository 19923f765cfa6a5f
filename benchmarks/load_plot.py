"""Draws what ``load.py day`` measured: ``python benchmarks/load_plot.py RESULTS.json PICTURE.png``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

NAMES = {"jvm": "Java", "driver": "driver's Python", "heartbeat": "heartbeat's process", "other": "Python workers"}


def plot(results: dict[str, Any], path: Path) -> None:
    """Cost of a micro-batch, memory, and what is on disk, over the micro-batches."""
    samples = results["samples"]
    at = [sample["batches"] for sample in samples]
    figure, (cost, memory, disk) = plt.subplots(1, 3, figsize=(12, 3.4))
    cost.plot(at, [sample["processor_ms"] for sample in samples], label="processor time")
    cost.plot(at, [sample["duration_ms"] for sample in samples], label="duration")
    cost.set_ylabel("ms per micro-batch")
    for role, name in NAMES.items():
        memory.plot(at, [sample["rss_mb"].get(role, 0) for sample in samples], label=name)
    memory.plot(at, [sample["live_heap_mb"] for sample in samples], "--", label="live heap of Java")
    memory.set_ylabel("memory (MB)")
    disk.plot(at, [sample["checkpoint_kb"] / 1024 for sample in samples], label="checkpoint (MB)")
    disk.plot(at, [sample["promise_kb"] / 100 for sample in samples], label="promise's folder (100 KB)")
    disk.plot(at, [sample["checkpoint_files"] / 100 for sample in samples], label="files of the checkpoint (100)")
    for axes in (cost, memory, disk):
        axes.set_ylim(bottom=0)
        axes.set_xlabel("micro-batches")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    plot(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
