"""Pages that are made from the code when the documentation is built: every verb, metric and error condition."""

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
    """MkDocs asks which pages there are."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/cli.md", content=command_page()))
    files.append(File.generated(config, "reference/metrics.md", content=metrics_page()))
    files.append(File.generated(config, "reference/errors.md", content=errors_page()))
    return files


def command_page() -> str:
    """The page of all verbs, each as its own ``--help`` says it."""
    from slackwater.cli.main import command

    lines = [
        "# The command",
        "",
        "Ends with 0 (kept, done), 1 (a promise broken, or the query failed) or 2 (bad input). "
        "`slackwater --debug …` shows a traceback where there would be none.",
    ]
    for name, verb in _verbs("slackwater", command):
        told = verb.get_help(click.Context(verb, info_name=name, terminal_width=84, max_content_width=84))
        lines += ["", f"## {name}", "", "```text", told, "```"]
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
        "Served by `sw.serve_metrics(port)`, and by `--metrics-port` on `demo`, `run` and `watch`. "
        f"Every metric has the labels {' and '.join(f'`{label}`' for label in LABELS)}.",
        "",
        "| metric | kind | further label | meaning |",
        "|---|---|---|---|",
    ]
    for measure in MEASURES:
        name = measure.name + ("_total" if measure.kind == "counter" else "")
        label = f"`{measure.label}`" if measure.label else ""
        lines.append(f"| `{name}` | {measure.kind} | {label} | {measure.help} |")
    return "\n".join([*lines, ""])


def errors_page() -> str:
    """The page of all conditions."""
    lines = [
        "# Errors",
        "",
        "Every refusal reads `[condition] what is wrong, with the value; what to do`, and is a `SlackwaterError` whose "
        "`condition` a program can look at. Words in ⟨⟩ are filled in. A promise that breaks while a query runs is no "
        "error: it is a fact in the ledger, on the page and in the metrics.",
        "",
        "| condition | what is wrong | what to do |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {_cell(problem)} | {_cell(remedy)} |" for name, (problem, remedy) in conditions().items()]
    return "\n".join([*lines, ""])


def conditions() -> dict[str, tuple[str, str]]:
    """Every condition that the code can name, with its first text and remedy."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name, problem, remedy in _conditions_of(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, (problem, remedy))
    return dict(sorted(found.items()))


def _conditions_of(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        texts = [_text(argument) for argument in node.args]
        for place, name in enumerate(texts):
            if name is None:
                continue
            logged = _LOGGED.match(name)
            if logged is not None:
                problem, _, remedy = logged[2].partition("; ")
                yield logged[1], re.sub(r"%[rs]", "⟨…⟩", problem), re.sub(r"%[rs]", "⟨…⟩", remedy)
            elif _CONDITION.fullmatch(name) and len(texts) > place + 2 and isinstance(node.args[place], ast.Constant):
                yield name, texts[place + 1] or "", texts[place + 2] or ""


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "⟨…⟩" for part in node.values)
    return None


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
