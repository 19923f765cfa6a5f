"""A standalone cluster whose worker does not see some of the driver's folders."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.helpers.bare_environment import environment_without_paths

_HOME = Path(pyspark.__file__).parent


def can_hide() -> bool:
    """Whether this process may mount over a folder for another one."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def hidden_cluster(folder: Path, hidden: list[Path], python: str) -> Iterator[str]:
    """The address of a master with one worker; the worker finds ``hidden`` empty."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    spark_class = str(_HOME / "bin" / "spark-class")
    master = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    worker = [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2"]
    worker += ["--memory", "1g", "--work-dir", str(folder / "work"), "--webui-port", "0", url]
    mounts = "".join(f"mount -t tmpfs none {shlex.quote(str(path))} && " for path in hidden)
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start([*master, "--webui-port", "0"], folder / "master.log", python))
        while not _listens(port):
            assert started[0].poll() is None, (folder / "master.log").read_text()
            time.sleep(0.1)  # a process that starts has no other sign
        started.append(
            _start(["unshare", "-m", "sh", "-c", f"{mounts}exec {shlex.join(worker)}"], folder / "worker.log", python)
        )
        yield url
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(command: list[str], log: Path, python: str) -> subprocess.Popen[bytes]:
    env = {**environment_without_paths(python), "SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("ab") as output:
        return subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
