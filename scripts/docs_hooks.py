"""MkDocs hooks that generate reference pages from the code: verbs, metrics and error conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

SOURCE = Path(__file__).resolve().parents[1] / "src" / "slackwater"
_CONDITION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
_LOGGED = re.compile(r"\[([a-z0-9]+(?:-[a-z0-9]+)+)\] (.+)", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages. MkDocs calls this when it collects files."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/cli.md", content=command_page()))
    files.append(File.generated(config, "reference/metrics.md", content=metrics_page()))
    files.append(File.generated(config, "reference/errors.md", content=errors_page()))
    return files


def command_page() -> str:
    """The page of all verbs, with the ``--help`` text of each."""
    from slackwater.cli.main import command

    lines = [
        "# The command",
        "",
        "Install it with `pip install 'slackwater[cli]'`. Exit codes: 0 kept or done, 1 a promise is broken or the "
        "query failed, 2 bad input. `slackwater --debug …` prints the traceback of an error.",
    ]
    for name, verb in _verbs("slackwater", command):
        help_text = verb.get_help(click.Context(verb, info_name=name, terminal_width=84, max_content_width=84))
        lines += ["", f"## {name}", "", "```text", help_text, "```"]
    return "\n".join([*lines, ""])


def _verbs(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from _verbs(f"{name} {verb}", found)


def metrics_page() -> str:
    """The page of all metrics."""
    from slackwater.watching.metrics import LABELS, MEASURES

    lines = [
        "# Metrics",
        "",
        "`sw.serve_metrics(port)` and the option `--metrics-port` of `demo`, `run` and `watch` serve these metrics. "
        f"Every metric has the labels {' and '.join(f'`{label}`' for label in LABELS)}.",
        "",
        "| metric | kind | additional label | meaning |",
        "|---|---|---|---|",
    ]
    for measure in MEASURES:
        name = measure.name + ("_total" if measure.kind == "counter" else "")
        label = f"`{measure.label}`" if measure.label else ""
        lines.append(f"| `{name}` | {measure.kind} | {label} | {measure.help} |")
    return "\n".join([*lines, ""])


def errors_page() -> str:
    """The page of all error conditions."""
    lines = [
        "# Errors",
        "",
        "Every error reads `[condition] what is wrong, with the value; what to do` and is a `SlackwaterError`. "
        "Programs can test its attribute `condition`. ⟨…⟩ stands for a value. A broken promise is not an error: it "
        "appears in the report, on the live page and in the metrics.",
        "",
        "| condition | what is wrong | what to do |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {_cell(problem)} | {_cell(remedy)} |" for name, (problem, remedy) in conditions().items()]
    return "\n".join([*lines, ""])


def conditions() -> dict[str, tuple[str, str]]:
    """Every condition in the code, with the problem and the remedy of its first occurrence."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name, problem, remedy in _conditions_of(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, (problem, remedy))
    return dict(sorted(found.items()))


def _conditions_of(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Find (condition, problem, remedy) in the string arguments of calls, and in log messages ``[condition] …``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        texts = [_text(argument) for argument in node.args]
        for index, name in enumerate(texts):
            if name is None:
                continue
            logged = _LOGGED.match(name)
            if logged is not None:
                problem, _, remedy = logged[2].partition("; ")
                yield logged[1], re.sub(r"%[rs]", "⟨…⟩", problem), re.sub(r"%[rs]", "⟨…⟩", remedy)
            elif _CONDITION.fullmatch(name) and len(texts) > index + 2 and isinstance(node.args[index], ast.Constant):
                yield name, texts[index + 1] or "", texts[index + 2] or ""


def _text(node: ast.expr) -> str | None:
    """The text of a string or f-string, with ⟨…⟩ for its expressions; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "⟨…⟩" for part in node.values)
    return None


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
