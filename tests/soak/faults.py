"""What may go wrong, one function each. A fault happens while micro-batches run, unless it stops everything itself."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.soak.processes import Child


@dataclass
class Scene:
    """What a fault can reach. ``copies`` are older copies of the promises' folder."""

    root: Path
    child: Child
    rng: np.random.Generator
    copies: list[Path] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)

    @property
    def location(self) -> Path:
        return self.root / "slackwater"

    def pause(self, most_s: float) -> None:
        """Let a random part of this time pass, so that a fault hits another moment of a micro-batch each time."""
        time.sleep(float(self.rng.uniform(0, most_s)))

    def keep_copy(self) -> None:
        """Copy the promises' folder, for a fault that brings it back."""
        copy = self.root / "copies" / f"{len(self.copies):03d}"
        shutil.copytree(self.location, copy)
        self.copies.append(copy)

    def repair(self) -> None:
        """End what lasts."""
        while self.undo:
            self.undo.pop()()


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    ``stops``: a query may fail. ``ends``: the child is gone afterwards. ``forgets``: what the promises knew is lost.
    """

    do: Callable[[Scene], None]
    stops: bool = False
    ends: bool = False
    forgets: bool = False


def _nothing(scene: Scene) -> None:
    pass


def _restart(scene: Scene) -> None:
    scene.child.stop()


def _kill(scene: Scene) -> None:
    scene.pause(3)
    scene.child.kill()


def _kill_role(role: str) -> Callable[[Scene], None]:
    def kill(scene: Scene) -> None:
        scene.pause(3)
        scene.child.signal(role, signal.SIGKILL)

    return kill


def _kill_driver_only(scene: Scene) -> None:
    """The Python driver dies first. The JVM runs on until it notices."""
    scene.pause(3)
    scene.child.signal("driver", signal.SIGKILL)
    scene.pause(1)
    scene.child.kill()


def _pause_all(scene: Scene) -> None:
    scene.pause(2)
    scene.child.signal_all(signal.SIGSTOP)
    scene.pause(6)
    scene.child.signal_all(signal.SIGCONT)


def _pause_role(role: str) -> Callable[[Scene], None]:
    def pause(scene: Scene) -> None:
        scene.pause(2)
        scene.child.signal(role, signal.SIGSTOP)
        scene.pause(6)
        scene.child.signal(role, signal.SIGCONT)

    return pause


def _full_disk(scene: Scene) -> None:
    """The driver can write nothing: neither what a promise knows nor what it decides."""
    scene.child.limit_files(0)
    scene.undo.append(lambda: scene.child.limit_files(-1))


def _unwritable(scene: Scene) -> None:
    """The promises' folder becomes a file, which nothing can be written below, whoever runs this."""
    away = scene.root / "away"
    scene.location.rename(away)
    scene.location.touch()

    def back() -> None:
        scene.location.unlink()
        away.rename(scene.location)

    scene.undo.append(back)


def _remove_folder(scene: Scene) -> None:
    shutil.rmtree(scene.location, ignore_errors=True)


def _tear_exchange(scene: Scene) -> None:
    """Tear the small files that the driver and the heartbeats' processes exchange."""
    for path in (scene.root / "tmp").rglob("heartbeat-*.json"):
        _tear(path)


def _tear(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _tear_snapshots(scene: Scene) -> None:
    for path in scene.location.rglob("snapshot-*"):
        _tear(path)


def _delete_snapshots(scene: Scene) -> None:
    for path in scene.location.rglob("snapshot-*"):
        path.unlink(missing_ok=True)


def _older_snapshots(scene: Scene) -> None:
    if scene.copies:
        copy = scene.copies[int(scene.rng.integers(len(scene.copies)))]
        shutil.rmtree(scene.location, ignore_errors=True)
        shutil.copytree(copy, scene.location)


def _then(first: Callable[[Scene], None], second: Callable[[Scene], None]) -> Callable[[Scene], None]:
    def both(scene: Scene) -> None:
        first(scene)
        second(scene)

    return both


FAULTS: dict[str, Fault] = {
    "none": Fault(_nothing),
    "restart": Fault(_restart, ends=True),
    "kill-all": Fault(_kill, ends=True),
    "kill-driver": Fault(_kill_driver_only, ends=True),
    "kill-jvm": Fault(_then(_kill_role("jvm"), _kill), ends=True),
    "kill-heartbeat": Fault(_kill_role("heartbeat"), stops=True),
    "kill-worker": Fault(_kill_role("worker"), stops=True),
    "pause-all": Fault(_pause_all),
    "pause-driver": Fault(_pause_role("driver")),
    "pause-heartbeat": Fault(_pause_role("heartbeat")),
    "pause-jvm": Fault(_pause_role("jvm")),
    "full-disk": Fault(_full_disk),
    "full-disk-kill": Fault(_then(_full_disk, _kill), ends=True, forgets=True),
    "unwritable": Fault(_unwritable, forgets=True),
    "unwritable-kill": Fault(_then(_unwritable, _kill), ends=True, forgets=True),
    "missing-folder": Fault(_remove_folder, forgets=True),
    "missing-folder-kill": Fault(_then(_remove_folder, _kill), ends=True, forgets=True),
    "torn-exchange": Fault(_tear_exchange),
    "torn-snapshot": Fault(_then(_restart, _tear_snapshots), ends=True, forgets=True),
    "torn-snapshot-kill": Fault(_then(_kill, _tear_snapshots), ends=True, forgets=True),
    "deleted-snapshot": Fault(_then(_restart, _delete_snapshots), ends=True, forgets=True),
    "deleted-snapshot-kill": Fault(_then(_kill, _delete_snapshots), ends=True, forgets=True),
    "older-snapshot": Fault(_then(_restart, _older_snapshots), ends=True, forgets=True),
    "older-snapshot-kill": Fault(_then(_kill, _older_snapshots), ends=True, forgets=True),
}
