"""What Spark starts as the Python of a source: the session's interpreter, told to connect before it imports."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from slackwater.spark.worker import early_connection

_LAUNCHERS: WeakKeyDictionary[SparkSession, tuple[tempfile.TemporaryDirectory[str], Path | None]] = WeakKeyDictionary()
_LONGEST_S = 60.0


def launcher_of(spark: SparkSession) -> Path | None:
    """A program that Spark can start instead of Python; None where it cannot be used.

    It exists on this machine only, and executors start it too when they repeat a micro-batch. So a session on a cluster
    has none; nor has one without a local Python (Spark Connect), nor a system without shell scripts.
    """
    if spark not in _LAUNCHERS:
        folder = tempfile.TemporaryDirectory(prefix="slackwater-python-", ignore_cleanup_errors=True)
        _LAUNCHERS[spark] = folder, _new_launcher(spark, Path(folder.name))
    return _LAUNCHERS[spark][1]


def _new_launcher(spark: SparkSession, folder: Path) -> Path | None:
    try:
        context = spark.sparkContext
        python = shutil.which(context.pythonExec)
        if python is None or not str(context.master).startswith("local"):
            return None
        launcher = folder / "python"
        launcher.write_text(_text(python))
        launcher.chmod(0o755)
        # It may lie on a file system from which nothing can be started.
        subprocess.run([launcher, "--version"], check=True, capture_output=True, timeout=_LONGEST_S)
    except Exception:
        return None
    return launcher


def _text(python: str) -> str:
    script = shlex.quote(str(Path(early_connection.__file__)))
    return (
        "#!/bin/sh\n"
        f'case "$2" in {early_connection.WORKER}) exec {shlex.quote(python)} -S -P {script};; esac\n'
        f'exec {shlex.quote(python)} "$@"\n'
    )
