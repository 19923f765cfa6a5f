"""The child process with everything that it starts, seen from outside: commands, kills, memory, open files."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

from tests.helpers.processes import REPOSITORY, environment

HANG_S = 300.0
"""A child that does not answer for so long hangs."""
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m -Xmx1500m"


class ChildEnded(Exception):
    """The child ended before it answered."""


class ChildHangs(Exception):
    """The child has not answered for a long time."""


@dataclass
class Child:
    """The process of the queries. It leads a session, so all that it starts can be found and killed."""

    root: Path
    kinds: tuple[str, ...]
    starts: int = 0
    _process: subprocess.Popen[str] = field(init=False)
    _started: set[int] = field(default_factory=set)

    def start(self) -> None:
        self.starts += 1
        temporary = self.root / "tmp"
        temporary.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.soak.child", str(self.root), *self.kinds]
        more = {"TMPDIR": str(temporary), "SPARK_SUBMIT_OPTS": JVM_OPTIONS}
        with (self.root / f"child-{self.starts:03d}.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=environment(**more),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def ask(self) -> None:
        """Ask for the reports once all rows are read."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("settle\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise ChildEnded from error

    def answer(self) -> dict[str, Any]:
        """Wait for the answer. What else the child prints is passed over."""
        assert self._process.stdout is not None
        while True:
            if not select([self._process.stdout], [], [], HANG_S)[0]:
                raise ChildHangs
            line = self._process.stdout.readline()
            if not line:
                raise ChildEnded
            with suppress(json.JSONDecodeError):
                answer: dict[str, Any] = json.loads(line)
                return answer

    def stop(self) -> None:
        """End it cleanly; raises if that takes too long."""
        assert self._process.stdin is not None
        self._started |= set(self.pids())
        with suppress(BrokenPipeError):
            self._process.stdin.write("stop\n")
            self._process.stdin.close()
        try:
            self._process.wait(HANG_S)
        except subprocess.TimeoutExpired as error:
            raise ChildHangs from error
        self.kill()

    def kill(self) -> None:
        """Kill it with all that it has started."""
        for pid in {*self._started, *self.pids(), self._process.pid}:
            if _session(pid) == self._process.pid or pid in self._started:
                _signal(pid, signal.SIGKILL)
        self._started.clear()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def signal(self, role: str, number: int) -> bool:
        """Send a signal to one process of this role; whether there is one."""
        found = sorted(pid for pid in self.pids() if _role(pid) == role)
        if role == "worker":  # the daemon is the oldest
            found = found[-1:]
        self._started |= set(self.pids())
        for pid in found[:1] if number == signal.SIGKILL else found:
            _signal(pid, number)
        return bool(found)

    def signal_all(self, number: int) -> None:
        for pid in self.pids():
            _signal(pid, number)

    def limit_files(self, most_bytes: int) -> None:
        """Let the driver's Python process write no file longer than this, as a full disk does; -1 lifts it."""
        with suppress(ProcessLookupError):
            hard = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (most_bytes, hard))

    def pids(self) -> list[int]:
        """The child and all its descendants."""
        parents = {pid: parent for pid in _all_pids() if (parent := _parent(pid)) is not None}
        found = [self._process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return [pid for pid in found if Path(f"/proc/{pid}").exists()]

    def usage(self) -> dict[str, dict[str, int]]:
        """Resident memory in MB and open files, by role."""
        found: dict[str, dict[str, int]] = {}
        for pid in self.pids():
            with suppress(OSError):
                entry = found.setdefault(_role(pid), {"processes": 0, "rss_mb": 0, "files": 0})
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                entry["processes"] += 1
                entry["rss_mb"] += pages * os.sysconf("SC_PAGE_SIZE") >> 20
                entry["files"] += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        return found


def _role(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "gone"
    if "python_streaming_source_runner" in line:
        return "heartbeat"
    if "tests.soak.child" in line:
        return "driver"
    if "pyspark.daemon pyspark.worker" in line:
        return "worker"
    return "jvm" if "java" in line.split(" ")[0] else "other"


def _all_pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _parent(pid: int) -> int | None:
    return _stat(pid, 1)


def _session(pid: int) -> int | None:
    return _stat(pid, 3)


def _stat(pid: int, position: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[position])
    except (OSError, IndexError):
        return None


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
