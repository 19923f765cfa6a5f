"""The documentation builds without a warning, and leaves nothing out that exists."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import slackwater as sw
from slackwater.cli.main import VERBS
from slackwater.control.disorder import method_names
from slackwater.control.shedding import law_names
from slackwater.language.clause import KEYWORDS
from slackwater.watching.metrics import metric_names

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WARNING" not in ran.stdout + ran.stderr
    return built


def text(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_every_verb_and_option_is_in_the_reference(site: Path) -> None:
    reference = text(site / "reference" / "cli.html")
    for verb in VERBS:
        assert f"slackwater {verb}" in reference, verb
    for option in ("--drop-ratio", "--metrics-port", "--watch", "--debug", "--once"):
        assert option in reference, option


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "reference" / "api.html").read_text()
    documented = {name.rpartition(".")[2] for name in re.findall(r'id="(slackwater\.[\w.]+)"', reference)}
    assert set(sw.__all__) - {"__version__"} <= documented


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert not [path for path in DOCS.rglob("*.md") if str(path.relative_to(DOCS)) not in navigation]


def test_every_metric_is_documented(site: Path) -> None:
    page = text(site / "reference" / "metrics.html")
    assert not [name for name in metric_names() if name not in page]


def test_every_error_condition_is_documented(site: Path) -> None:
    page = text(site / "reference" / "errors.html")
    named = set(script("docs_hooks").conditions())
    assert not [name for name in named if name not in page]
    # whatever else looks like a condition where errors are made, so that none is overlooked
    made = re.compile(
        r"(?:InvalidOption|InvalidStream|InvalidData|PromiseConflict|UnknownName|MissingRequirement)\(\s*\"([a-z0-9-]+)\""
    )
    for path in (ROOT / "src").rglob("*.py"):
        assert set(made.findall(path.read_text())) <= named, path


def test_every_clause_is_in_the_language_reference() -> None:
    page = (DOCS / "language.md").read_text()
    assert not [word for word in KEYWORDS if not re.search(rf"\| `{word}\b", page)]
    drawn = re.findall(r">([A-Z]+)</text>", (DOCS / "images" / "grammar.svg").read_text())
    assert set(KEYWORDS) <= set(drawn), "python scripts/grammar.py draws it anew"


def test_every_method_and_law_is_documented_and_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for name in method_names():
        assert (DOCS / "methods" / f"{name}.md").exists() and f"methods/{name}.md" in navigation, name
    laws = (DOCS / "laws" / "README.md").read_text()
    assert not [name for name in law_names() if f"`{name}`" not in laws]


def test_every_method_and_law_has_its_plot() -> None:
    for name in method_names():
        page, image = (DOCS / "methods" / f"{name}.md").read_text(), DOCS / "images" / "methods" / f"{name}.svg"
        assert f"(../images/methods/{name}.svg)" in page, name
        assert f">{name}: " in image.read_text(), "make plots draws it anew"
    laws = (DOCS / "laws" / "README.md").read_text()
    for name in law_names():
        assert f"(../images/laws/{name}.svg)" in laws and (DOCS / "images" / "laws" / f"{name}.svg").exists(), name


def test_a_plot_is_what_the_code_draws() -> None:
    drawn = script("plots").law_plot("ctrl")
    assert drawn == (DOCS / "images" / "laws" / "ctrl.svg").read_text(), "make plots draws it anew"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img)[^>]+src=\"([^\"]+)\"|<link[^>]+href=\"([^\"]+)\"[^>]*stylesheet", page.read_text()
        )
        assert not [a or b for a, b in loaded if (a or b).startswith(("http", "//"))], page
