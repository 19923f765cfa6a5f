"""Writes the tables of docs/benchmarks.md that have results files: ``python scripts/benchmarks_page.py``.

``benchmarks/results/load-*.json`` are what ``make bench-load`` wrote. A table stands between two comments, and a test
compares it with its file.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "benchmarks.md"
RESULTS = REPOSITORY / "benchmarks" / "results"
_TABLE = re.compile(r"(<!-- (load-\w+)\.json -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """The text of the page with its tables as the results files say."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n{found[3]}", text)


def table(name: str) -> str:
    """The table of a results file, with the line that says where it comes from."""
    results = json.loads((RESULTS / f"{name}.json").read_text())
    source = f"`{results['command']}`, {results['date']}, {results['cores']} cores, {results['machine']}"
    return f"{source}:\n\n" + (_growth(results) if "growth" in results else _comparison(results))


def _growth(results: dict[str, Any]) -> str:
    batches = results["samples"][-1]["batches"]
    text = f"| of {batches:,} micro-batches, medians | second quarter | last quarter |\n|---|---|---|\n"
    return text + "".join(
        f"| {name} | {early:,.0f} | {late:,.0f} |\n" for name, (early, late) in results["growth"].items()
    )


def _comparison(results: dict[str, Any]) -> str:
    what = results["what"]
    text = "| rows per micro-batch |" + ("" if what == "one" else f" {what} |")
    text += " processor time, plain Spark | under the promise | ratio | duration, plain Spark | under the promise |\n"
    text += "|---" * (6 if what == "one" else 7) + "|\n"
    for figure in results["figures"]:
        ratios = figure["processor_ratios"]
        cells = [f"{figure['rows_per_batch']:,}"] + ([] if what == "one" else [f"{figure[what]:,}"])
        cells += [f"{statistics.median(figure['processor_ms'][name]):,.0f} ms" for name in ("plain", "promised")]
        cells.append(f"{figure['processor_ratio']:.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs)")
        cells += [f"{statistics.median(figure['duration_ms'][name]):,.0f} ms" for name in ("plain", "promised")]
        text += f"| {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
