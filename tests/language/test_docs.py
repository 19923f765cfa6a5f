"""What the language's page shows is what the code does."""

import re
from pathlib import Path

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse, print_query
from slackwater.language.clause import KEYWORDS
from slackwater.plan import make_plan

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")


def test_the_example_is_right_and_check_says_what_the_page_says() -> None:
    (example,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    query = parse(example)
    assert f"right ({make_plan(query).path.value}): {print_query(query)}" in PAGE


def test_the_error_is_the_one_on_the_page() -> None:
    text = "SELECT MAX(value)\nFROM   Sensors [RANGE 5 minutes SLIDE 10 tuples]"
    with pytest.raises(QueryTextError) as refused:
        make_plan(parse(text))
    assert str(refused.value) in PAGE


def test_every_clause_is_on_the_page() -> None:
    for keyword in KEYWORDS:
        assert f"| `{keyword} " in PAGE, keyword
