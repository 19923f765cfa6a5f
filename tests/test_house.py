"""The house is in order: style, types, direction of imports, no long files, and a wheel that installs on its own."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "src", "tests", "benchmarks", "examples", "scripts"],
        ["ruff", "format", "--check", "src", "tests", "benchmarks", "examples", "scripts"],
        ["mypy"],
        ["lint-imports"],
    ],
    ids=" ".join,
)
def test_in_order(command: list[str]) -> None:
    ran = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_spark_s_workers_import_is_light() -> None:
    modules = ", ".join(f"slackwater.spark.{name}" for name in ("heartbeats", "clock", "parcels", "advance", "deliver"))
    script = f"import sys, {modules}; print([name for name in ('sqlglot', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_wheel_installs_in_an_empty_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("slackwater-*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    said = subprocess.run(
        [python, "-I", "-c", "import slackwater; print(slackwater.__version__, sorted(dir(slackwater)))"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert said.stdout.startswith("0.1.0 ['Report', 'SlackwaterError'")


def test_the_project_names_no_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    machine = ["/" + name + "/" for name in ("work", "root", "home")]
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".sh", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not any(place in text for place in machine), name
