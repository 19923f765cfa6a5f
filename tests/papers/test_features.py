"""The page of the papers' features: every test on it exists, and every way to write a feature is accepted."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import click
import pytest

import slackwater as sw
from slackwater.cli.main import command as slackwater
from slackwater.control.disorder import make_method
from slackwater.control.shedding.registry import make_law
from slackwater.language import parse
from slackwater.plan import make_plan
from slackwater.plan.standing import standing_shape
from slackwater.promises import Completeness

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers" / "features.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in PAGE.splitlines() if "`tests/" in line
]
WAYS = sorted({way for row in ROWS for way in re.findall(r"`([^`]+)`", row[1])})
TESTS = sorted({test for row in ROWS for test in re.findall(r"`([^`]+)`", row[2])})


def test_every_paper_has_its_table() -> None:
    papers = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert papers == ["Kim 2007", "Kim 2010", "Kim 2012", "Tu 2006", "Zhu 2004"]
    assert all(len(row) == 3 and "`" in row[1] and "`tests/" in row[2] for row in ROWS) and len(ROWS) > 40


@pytest.mark.parametrize("name", TESTS)
def test_the_test_exists(name: str) -> None:
    file, _, function = name.partition("::")
    defined = {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert function in defined if function else any(name.startswith("test_") for name in defined)


@pytest.mark.parametrize("way", WAYS)
def test_the_way_to_write_it_is_accepted(way: str) -> None:
    if way.startswith("sw."):
        check_python(way)
    elif way.startswith("slackwater "):
        check_command(way)
    else:
        query = parse(f"SELECT COUNT(*) FROM S {way}" if way.startswith("[") else way)
        if query.precision is None:
            make_plan(query)
        else:
            value = re.search(r"\((\w+)\)", way)
            standing_shape(query, query.tables()[0].name, None, value[1] if value and "price" not in way else "price")


def check_python(way: str) -> None:
    call = ast.parse(way, mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    function = getattr(sw, call.func.attr)
    options: dict[str, Any] = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    if function is sw.Deferral:
        assert sw.Deferral(*map(ast.literal_eval, call.args), **options)
    elif function is sw.Method:
        (name,) = map(ast.literal_eval, call.args)
        assert make_method(name, Completeness(0.01), **options)
    elif function is sw.Law:
        (name,) = map(ast.literal_eval, call.args)
        assert make_law(name, **options)
    else:
        inspect.signature(function).bind(*call.args, **options)


def check_command(way: str) -> None:
    words = way.split()[1:]
    command: click.Command = slackwater
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
