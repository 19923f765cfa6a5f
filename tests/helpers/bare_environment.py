"""A virtual environment with the built wheel and its core dependencies, and without the extras."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def bare_environment(project: Path, folder: Path) -> str:
    """Build the wheel, install it into an empty environment, link the core dependencies, and return its Python.

    The links point into the running environment, because downloading Spark would take minutes.
    """
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("slackwater-*.whl")
    venv.create(folder / "bare", with_pip=False)
    python = str(folder / "bare" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    (packages,) = folder.glob("bare/lib/python*/site-packages")
    (metadata,) = importlib.metadata.distributions(name="slackwater", path=[str(packages)])
    for name in _requirements(metadata):
        _link(importlib.metadata.distribution(name), packages)
    return python


def link_packages(environment: Path, names: list[str]) -> None:
    """Link installed packages, with all they need, into a virtual environment."""
    (packages,) = environment.glob("lib/python*/site-packages")
    for name in names:
        distribution = importlib.metadata.distribution(name)
        _link(distribution, packages)
        for required in _requirements(distribution):
            _link(importlib.metadata.distribution(required), packages)


def environment_without_paths(python: str) -> dict[str, str]:
    """The environment of this process for another Python that imports only its own packages."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    return {**kept, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}


def _requirements(distribution: importlib.metadata.Distribution) -> set[str]:
    """All distributions that this one needs without an extra."""
    found: set[str] = set()
    ahead = [distribution]
    while ahead:
        for text in ahead.pop().requires or []:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                found.add(name)
                ahead.append(importlib.metadata.distribution(name))
    return found


def _link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    tops = {path.parts[0] for path in distribution.files or [] if path.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
