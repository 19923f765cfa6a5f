"""Writes docs/usages.md from the tests that check a usage: ``python scripts/usages.py``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "usages.md"
TESTS = (
    "spark/test_several_queries",
    "spark/test_usages",
    "spark/test_usage_delta",
    "spark/test_usage_pipelines",
    "spark/test_usage_two_applications",
    "spark/test_starts",
    "spark/test_recount",
    "spark/test_cluster",
    "spark/test_cluster_killed",
    "soak/test_checks",
    "spark/test_bare_executors",
    "spark/test_object_stores",
    "kafka/test_promise",
    "kafka/test_changes",
    "spark/test_connect",
)
"""Modules of tests/, in the order of the table."""
HEAD = """\
# Usages

What holds for each way to use a promise, and the test below `tests/` that checks it on real Spark. `make test` runs
these tests, and `make test-all` also those marked †. What is refused is refused with an error that says what to do,
before a row is lost.

| usage | what holds | test |
|---|---|---|
"""


def page() -> str:
    """The text of docs/usages.md."""
    rows = [row for module in TESTS for row in _rows(module)]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rows(module: str) -> Iterator[tuple[str, str, str]]:
    """Usage, what holds, and test, for each decorated test of a module."""
    path = REPOSITORY / "tests" / f"{module}.py"
    tree = ast.parse(path.read_text())
    whole_module = any("pytest.mark.full" in ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign))
    for test in tree.body:
        if not isinstance(test, ast.FunctionDef):
            continue
        marks = "".join(ast.unparse(decorator) for decorator in test.decorator_list)
        full = " †" if whole_module or "pytest.mark.full" in marks else ""
        for call in test.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "usage":
                what, holds = (ast.literal_eval(argument) for argument in call.args)
                yield what, holds, f"`{module}.py::{test.name}`{full}"


if __name__ == "__main__":
    PAGE.write_text(page())
