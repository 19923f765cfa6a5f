"""Python processes that import the package and the helpers as the tests do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pyspark

REPOSITORY = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """The environment of this process, with its import path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]), **more}


def start_module(name: str, *arguments: str, log: IO[bytes] | None = None, **more: str) -> subprocess.Popen[bytes]:
    """Start a module of ``tests.helpers`` in its own process group, so that a test can kill all of it.

    ``more`` is added to its environment.
    """
    command = [sys.executable, "-m", f"tests.helpers.{name}", *arguments]
    return subprocess.Popen(
        command, cwd=REPOSITORY, env=environment(**more), stdout=log, stderr=log, start_new_session=True
    )


def run_on_cluster(script: str, folder: Path) -> list[str]:
    """Run a script on two executor processes that share only files with the driver; return the printed lines."""
    home = str(Path(pyspark.__file__).parent)
    ran = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=REPOSITORY,
        env=environment(MASTER="local-cluster[2,1,1024]", SPARK_HOME=home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
