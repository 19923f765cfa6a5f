"""The documentation builds without a warning and covers everything that exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.cli.main import VERBS
from slackwater.control.disorder import method_names
from slackwater.control.disorder.cause import Cause
from slackwater.control.shedding import law_names
from slackwater.language.clause import KEYWORDS
from slackwater.spark.runtime.settings import Setting
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile
from slackwater.spark.worker.mailbox import ABOUT, Mailbox
from slackwater.watching.metrics import metric_names
from slackwater.watching.series_file import series_path
from tests.helpers.scripts import load_script

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "slackwater"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WARNING" not in ran.stdout + ran.stderr
    return folder


def text(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


@pytest.mark.full
def test_every_verb_and_option_is_in_the_reference(site: Path) -> None:
    reference = text(site / "reference" / "cli.html")
    for verb in VERBS:
        assert f"slackwater {verb}" in reference, verb
    for option in ("--drop-ratio", "--metrics-port", "--watch", "--debug", "--once"):
        assert option in reference, option


@pytest.mark.full
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "reference" / "api.html").read_text()
    documented = {name.rpartition(".")[2] for name in re.findall(r'id="(slackwater\.[\w.]+)"', reference)}
    assert set(sw.__all__) - {"__version__"} <= documented


def test_every_public_name_has_an_entry_in_the_reference() -> None:
    page = (DOCS / "reference" / "api.md").read_text()
    listed = {path.rpartition(".")[2] for path in re.findall(r"^::: (slackwater\.[\w.]+)$", page, re.MULTILINE)}
    assert listed == set(sw.__all__) - {"__version__"}


def test_architecture_names_every_package() -> None:
    page = (DOCS / "architecture.md").read_text()
    packages = [path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    assert not [str(package) for package in packages if f"`{package}/`" not in page]


def test_architecture_names_every_file_of_a_promise(tmp_path: Path) -> None:
    page = (DOCS / "architecture.md").read_text()
    mailbox = Mailbox(tmp_path)
    mailbox.write_shed_ratio(0.0)
    mailbox.write_target(5.0)
    mailbox.publish("<epoch>", None, False, {})
    mailbox.control.write("<epoch>", ControlLine())
    mailbox.storage.write(ABOUT, "{}")
    ControlRowFile(tmp_path).write(ControlLine())
    series_path(tmp_path, "<query>").touch()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == 8
    assert not [name for name in [*files, "snapshot-<query>.json"] if f"| `{name}`" not in page]


def test_the_table_of_usages_is_what_its_tests_say() -> None:
    """``python scripts/usages.py`` writes it."""
    page = (DOCS / "usages.md").read_text()
    assert page == load_script("usages").page()
    tests = ROOT / "tests" / "spark"
    for path in (tests / "test_several_queries.py", *tests.glob("test_usage*.py")):
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE):
            assert f"`spark/{path.name}::{name}`" in page, "it has no @usage"


def test_tables_of_the_benchmarks_page_are_those_of_the_results_files() -> None:
    """``python scripts/benchmarks_page.py`` writes them."""
    script = load_script("benchmarks_page")
    text = script.PAGE.read_text()
    assert text == script.page(text)
    assert all(f"<!-- {path.name} -->" in text for path in script.RESULTS.glob("*.json"))


def test_every_module_that_the_docs_name_exists() -> None:
    pages = [*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
    names = {path.name for folder in ("src", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")}
    for page in pages:
        for name in re.findall(r"`(?:python )?([\w/]+\.py)[ `]", page.read_text()):
            exists = any((folder / name).exists() for folder in (ROOT, PACKAGE)) if "/" in name else name in names
            exists = exists or f"Save this as `{name}`" in page.read_text()
            assert exists, f"{page.name} names {name}"


def test_readme_and_start_show_one_screen_of_the_demo() -> None:
    script = load_script("demo_screen")
    (table,), (screen,) = (script.SCREEN.findall(page.read_text()) for page in (script.README, script.START))
    lines = screen.splitlines()[1:-1]
    assert table.splitlines()[1:-1] == script.extract("\n".join(lines)).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 24
    assert lines[-1].endswith("slackwater demo --watch")


def test_every_cause_of_a_decision_is_explained() -> None:
    page = (DOCS / "howto" / "decisions.md").read_text()
    code = "".join(path.read_text() for path in (PACKAGE / "control").rglob("*.py") if path.name != "cause.py")
    kinds = {kind for call in re.findall(r"Cause\((.+)", code) for kind in re.findall(r'"([a-z-]+)"', call)}
    texts = [Cause(kind, source=0).text(lambda _: "…") for kind in kinds]
    assert {"budget", "after-stall", "front-frame", "max-wait", "idle"} <= kinds
    assert not [text for text in texts if f"`{text}`" not in page]


def test_every_setting_is_documented() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    assert set(re.findall(r"^\| `(spark\.slackwater\.\w+)`", page, re.MULTILINE)) == {key.value for key in Setting}


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert not [path for path in DOCS.rglob("*.md") if str(path.relative_to(DOCS)) not in navigation]


@pytest.mark.full
def test_every_metric_is_documented(site: Path) -> None:
    page = text(site / "reference" / "metrics.html")
    assert not [name for name in metric_names() if name not in page]


@pytest.mark.full
def test_every_error_condition_is_documented(site: Path) -> None:
    page = text(site / "reference" / "errors.html")
    named = set(load_script("docs_hooks").conditions())
    assert not [name for name in named if name not in page]
    # a second, independent search for conditions, so that none is overlooked
    made = re.compile(
        r"(?:InvalidOption|InvalidStream|InvalidData|PromiseConflict|UnknownName|MissingRequirement)\(\s*\"([a-z0-9-]+)\""
    )
    for path in (ROOT / "src").rglob("*.py"):
        assert set(made.findall(path.read_text())) <= named, path


def test_every_clause_is_in_the_language_reference() -> None:
    page = (DOCS / "language.md").read_text()
    assert not [word for word in KEYWORDS if not re.search(rf"\| `{word}\b", page)]
    drawn = re.findall(r">([A-Z]+)</text>", (DOCS / "images" / "grammar.svg").read_text())
    assert set(KEYWORDS) <= set(drawn), "run python scripts/grammar.py"


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
        assert f">{name}: " in image.read_text(), "run make plots"
    laws = (DOCS / "laws" / "README.md").read_text()
    for name in law_names():
        assert f"(../images/laws/{name}.svg)" in laws and (DOCS / "images" / "laws" / f"{name}.svg").exists(), name


def test_a_plot_is_what_the_code_draws() -> None:
    drawn = load_script("plots").law_plot("ctrl")
    assert drawn == (DOCS / "images" / "laws" / "ctrl.svg").read_text(), "run make plots"


def test_the_pictures_of_the_heartbeat_are_what_the_code_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    page = (DOCS / "explanation" / "heartbeat.md").read_text()
    for path, svg in load_script("heartbeat_plots").pictures().items():
        assert path.read_text() == svg, "run make plots"
        assert f"(../images/heartbeat/{path.name})" in page


@pytest.mark.full
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img)[^>]+src=\"([^\"]+)\"|<link[^>]+href=\"([^\"]+)\"[^>]*stylesheet", page.read_text()
        )
        assert not [a or b for a, b in loaded if (a or b).startswith(("http", "//"))], page
