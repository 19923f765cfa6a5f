"""A standalone cluster on this machine, whose workers can be killed and need not see the driver's folders."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

_HOME = Path(pyspark.__file__).parent


def can_hide() -> bool:
    """Whether this process may mount over a folder for another one."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@dataclass
class StandaloneCluster:
    """A master and its workers, each in a process group of its own with the executors that it starts."""

    url: str
    folder: Path
    env: dict[str, str]
    hidden: Sequence[Path]
    cores: int
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self) -> None:
        """Start a worker; it finds the ``hidden`` folders empty."""
        worker = [_CLASS, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", str(self.cores)]
        worker += ["--memory", "1g", "--work-dir", str(self.folder / "work"), "--webui-port", "0", self.url]
        mounts = "".join(f"mount -t tmpfs none {shlex.quote(str(path))} && " for path in self.hidden)
        command = ["unshare", "-m", "sh", "-c", f"{mounts}exec {shlex.join(worker)}"] if self.hidden else worker
        self.workers.append(_start(command, self.folder / "worker.log", self.env))

    def lose_worker_of(self, executor: int) -> None:
        """Kill the worker that started an executor, with all its executors, as if its machine were gone."""
        group = os.getpgid(executor)
        (worker,) = (worker for worker in self.workers if worker.pid == group)
        self.workers.remove(worker)
        kill_group(worker)


_CLASS = str(_HOME / "bin" / "spark-class")


@contextmanager
def standalone_cluster(
    folder: Path, env: dict[str, str], *, workers: int = 1, cores: int = 2, hidden: Sequence[Path] = ()
) -> Iterator[StandaloneCluster]:
    """A master with workers of so many ``cores`` each, in the environment ``env``."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**env, "SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "256m"}
    command = [_CLASS, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    master = _start([*command, "--webui-port", "0"], folder / "master.log", env)
    cluster = StandaloneCluster(f"spark://127.0.0.1:{port}", folder, env, hidden, cores)
    try:
        while not _listens(port):
            assert master.poll() is None, (folder / "master.log").read_text()
            time.sleep(0.1)  # a process that starts has no other sign
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in [*cluster.workers, master]:
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group, and the group with it."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _start(command: list[str], log: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
