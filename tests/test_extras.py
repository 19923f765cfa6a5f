"""Optional dependencies: the core runs without them, and an error names the extra that is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import slackwater as sw
from slackwater.cli import entry
from slackwater.cli import main as cli
from slackwater.extras import EXTRAS, installed, require
from slackwater.spark.report import Report

BLOCK = f"import sys\nfor name in {sorted(EXTRAS)}: sys.modules[name] = None\n"


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make the modules look uninstalled."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def run_without_extras(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_every_public_name_imports_without_the_extras() -> None:
    ended = run_without_extras("import slackwater as sw\nfor name in sw.__all__: getattr(sw, name)")
    assert ended.returncode == 0, ended.stderr


def test_the_console_script_names_the_extra_and_exits_with_2() -> None:
    ended = run_without_extras("from slackwater.cli.entry import main\nmain()")
    assert ended.returncode == 2
    assert ended.stderr == (
        "slackwater: [missing-extra] the slackwater command needs click, which is not installed; "
        "pip install 'slackwater[cli]'\n"
    )


def test_the_console_script_runs_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["slackwater", "--version"])
    with pytest.raises(SystemExit, match="0"):
        entry.main()
    assert sw.__version__ in capsys.readouterr().out


@pytest.mark.parametrize(("module", "extra"), EXTRAS.items())
def test_require_names_module_and_extra(module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require(module, purpose="this test")
    hide(monkeypatch, module)
    assert not installed(module)
    with pytest.raises(sw.MissingRequirement, match=f"this test needs {module}, .*slackwater\\[{extra}\\]"):
        require(module, purpose="this test")


def test_the_page_and_the_metrics_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "tornado", "prometheus_client")
    no_session: Any = None
    with pytest.raises(sw.MissingRequirement, match="the live page needs tornado"):
        sw.watch(no_session)
    with pytest.raises(sw.MissingRequirement, match="the metrics endpoint needs prometheus_client"):
        sw.serve_metrics()


def test_a_report_without_matplotlib_is_plain_text_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("id", ())
    assert "<pre>" not in report._repr_html_()
    hide(monkeypatch, "matplotlib")
    assert report._repr_html_() == f"<pre>{report}</pre>"


@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce", "kim2012"),
        ("lab", "disorder", "--generated", "step", "--plot", "p.png"),
        ("lab", "shedding", "t.csv", "--target-delay", "2s", "--plot", "p.png"),
        ("watch",),
    ],
    ids=" ".join,
)
def test_a_verb_names_its_extra(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide(monkeypatch, "matplotlib", "bokeh")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("ts\n1\n")
    result = CliRunner().invoke(cli.command, arguments)
    assert isinstance(result.exception, sw.MissingRequirement), result.output
    assert result.exception.condition == "missing-extra"
