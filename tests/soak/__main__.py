"""``python -m tests.soak``: random faults for some minutes, or for some steps of some seeds."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.soak.queries import KINDS
from tests.soak.run import Outcome, Soak, draw_steps


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the processes of the queries must not stay behind
    options = _options()
    ends = time.monotonic() + options.minutes * 60
    seed, seeds, found = options.seed, list[dict[str, Any]](), 0
    while not seeds or (time.monotonic() < ends and len(seeds) < options.seeds):
        outcomes = _run(seed, options, ends)
        seeds.append({"seed": seed, "steps": [outcome.as_json() for outcome in outcomes]})
        found += sum(bool(outcome.problems) for outcome in outcomes)
        seed += 1
    summary = _summary(seeds)
    if options.json is not None:
        Path(options.json).write_text(json.dumps({"summary": summary, "seeds": seeds}, indent=1, default=str))
    print(json.dumps(summary))
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Break things at random.")
    parser.add_argument("--minutes", type=float, default=10.0, help="begin no step later than this (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seeds", type=int, default=10_000, help="at most so many seeds")
    parser.add_argument("--steps", type=int, default=100, help="steps of each seed (default: 100)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="the queries (default: all)")
    parser.add_argument("--json", help="write every step to this file")
    return parser.parse_args()


def _run(seed: int, options: argparse.Namespace, ends: float) -> list[Outcome]:
    root = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-"))
    soak = Soak(seed, root, tuple(options.kinds))
    outcomes: list[Outcome] = []
    for outcome in soak.run(draw_steps(seed, options.steps)):
        outcomes.append(outcome)
        print(_line(seed, outcome), flush=True)
        if time.monotonic() > ends:
            break
    if any(outcome.problems for outcome in outcomes):
        print(f"its files are in {root}; again: --seed {seed} --steps {len(outcomes)}", flush=True)
    else:
        soak.clean_up()
    return outcomes


def _line(seed: int, outcome: Outcome) -> str:
    what = f"seed {seed} step {outcome.step.number:3d} {outcome.took_s:5.1f} s {outcome.rows:7,} rows"
    inexact = f" (inexact: {' '.join(outcome.inexact)})" if outcome.inexact else ""
    verdict = "right" if not outcome.problems else "; ".join(outcome.problems)
    return f"{what}  {outcome.step}: {verdict}{inexact}"


def _summary(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    steps = [step for seed in seeds for step in seed["steps"]]
    last = [seed["steps"][-1] for seed in seeds if seed["steps"]]
    return {
        "seeds": len(seeds),
        "steps": len(steps),
        "rows": sum(step["rows"] for step in last),
        "batches": sum(step["batches"] for step in last),
        "restarts": sum(step["starts"] for step in steps),
        "failed_steps": sum(bool(step["problems"]) for step in steps),
        "faults": dict(Counter(step["step"]["fault"] for step in steps).most_common()),
        "inexact_at_the_end": dict(Counter(kind for step in last for kind in step["inexact"])),
        "most_rss_mb": _most(steps, "rss_mb"),
        "most_files": _most(steps, "files"),
    }


def _most(steps: list[dict[str, Any]], what: str) -> dict[str, int]:
    most: dict[str, int] = {}
    for step in steps:
        for role, usage in step["usage"].items():
            most[role] = max(most.get(role, 0), usage[what])
    return most


if __name__ == "__main__":
    sys.exit(main())
