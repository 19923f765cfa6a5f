"""The examples, errors and plans on the pages about the language are what the code prints."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from slackwater.language import parse, print_query
from slackwater.language.clause import KEYWORDS
from slackwater.plan import make_plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
QUERIES = (ROOT / "docs" / "papers" / "queries.md").read_text(encoding="utf-8")


def test_check_prints_what_the_page_shows_for_the_example() -> None:
    first, *others = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for other in others:
        make_plan(parse(other))
    query = parse(first)
    assert f"right ({make_plan(query).path.value}): {print_query(query)}" in PAGE


def test_the_pages_show_the_errors_and_plans() -> None:
    bench = load("papers_queries")
    refusals = bench.refusals()
    assert len(refusals) == 10
    for refusal in refusals:
        assert refusal in PAGE
    for example in bench.printed():
        assert f"```sql\n{example.text}\n```" in QUERIES and example.plan in QUERIES, example.title
    assert "NOT THE BATCH'S" not in QUERIES


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module


def test_the_page_lists_every_clause() -> None:
    for keyword in KEYWORDS:
        assert f"| `{keyword} " in PAGE, keyword
