"""One run: the steps that a seed draws, and what was wrong after each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.harness import FileStream
from tests.helpers.standing import SCHEMA as PRICES
from tests.helpers.standing import micro_batches, put_weights
from tests.soak.checkpoint_log import CheckpointLog, Published
from tests.soak.checks import (
    Problems,
    check_heartbeats,
    check_ledger,
    check_results,
    check_shed,
    check_simple_ledger,
    judged,
)
from tests.soak.faults import FAULTS, Fault, Scene
from tests.soak.processes import Child, ChildEnded, ChildHangs
from tests.soak.standing_check import check_answers
from tests.soak.stream import ACTS, Source

UNDER_A_HEARTBEAT = ("native", "panes", "per_row")
_WARM_UP_STEPS = 4
"""Nothing goes wrong in the first steps: a heartbeat must be in force. Before, Spark drops rows from before 1970."""
_WARM_UP_TICKS = 20
_MOST_RESTARTS = 3
_COPY_EVERY = 7


@dataclass(frozen=True)
class Step:
    """What the source does and what goes wrong; ``before`` and ``after`` the fault."""

    number: int
    before: str
    fault: str
    after: str

    def __str__(self) -> str:
        return f"{self.before}, {self.fault}, {self.after}"


def draw_steps(seed: int, count: int) -> list[Step]:
    """The steps of a seed. More steps begin with the same ones."""
    rng = np.random.default_rng([seed, 1])
    faults = list(FAULTS)
    drawn = []
    for number in range(count):
        before, after = str(rng.choice(ACTS)), str(rng.choice(ACTS))
        fault = str(rng.choice(faults))
        quiet = number < _WARM_UP_STEPS
        drawn.append(Step(number, "calm" if quiet else before, "none" if quiet else fault, "calm" if quiet else after))
    return drawn


@dataclass
class Outcome:
    """What one step found."""

    step: Step
    took_s: float
    problems: Problems
    rows: int
    batches: int
    starts: int
    failures: dict[str, list[str]]
    inexact: list[str]
    usage: dict[str, dict[str, int]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Soak:
    """The queries of one seed, and what is known of them."""

    seed: int
    root: Path
    kinds: tuple[str, ...]
    may_be_inexact: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        (self.root / "slackwater").mkdir(parents=True)
        rng = np.random.default_rng([self.seed, 2])
        self.source = Source(self.root / "in", rng, time.time)
        self.child = Child(self.root, self.kinds)
        self.scene = Scene(self.root, self.child, rng)
        self.logs = {kind: CheckpointLog(self.root / "checkpoints" / kind) for kind in self.kinds}
        self.published = {kind: Published(self.root / "out" / kind) for kind in self.kinds}
        self.ticks: list[list[dict[str, Any]]] = []
        self._prices: FileStream | None = None
        (self.root / "in").mkdir()
        if "standing" in self.kinds:
            put_weights(self.root / "standing" / "weights")
            (self.root / "standing" / "clock").write_text("0")

    def run(self, steps: list[Step]) -> Iterator[Outcome]:
        """Take the steps, up to the first one after which something is wrong."""
        ticks = micro_batches(_WARM_UP_TICKS + 3 * len(steps), warm_up=_WARM_UP_TICKS)
        self.child.start()
        try:
            for step in steps:
                began = time.monotonic()
                outcome = self._take(step, ticks)
                outcome.took_s = time.monotonic() - began
                yield outcome
                if outcome.problems:
                    return
                if step.number % _COPY_EVERY == 0:
                    self.scene.keep_copy()
        finally:
            self.scene.repair()
            self.child.kill()

    def _put(self, act: str, ticks: list[list[dict[str, Any]]]) -> None:
        self.source.act(act)
        if "standing" in self.kinds:
            # only its methods without Spark are used
            self._prices = self._prices or FileStream(None, self.root / "standing" / "in", PRICES)  # type: ignore[arg-type]
            self._prices.put(ticks[len(self.ticks)])
            self.ticks.append(ticks[len(self.ticks)])

    def _take(self, step: Step, ticks: list[list[dict[str, Any]]]) -> Outcome:
        fault, starts, failures = FAULTS[step.fault], self.child.starts, dict[str, list[str]]()
        self._excuse(fault)
        reports: dict[str, Any] = {}
        problems: Problems = []
        self._put(step.before, ticks)
        try:
            if not fault.ends:
                self.child.ask()
            fault.do(self.scene)
            if fault.ends:
                self.scene.repair()
                self.child.start()
                self.child.ask()
            self._answer(failures)
            self.scene.repair()
            self._put(step.after, ticks)
            self._put("calm", ticks)  # a report is that of the run before until this one has had a micro-batch
            self.child.ask()
            reports = self._answer(failures)
        except ChildHangs:
            problems.append("the child hangs")
        except ChildEnded:
            problems.append(f"the child ended {_MOST_RESTARTS} times")
        for kind, messages in failures.items():
            if not fault.stops:
                problems.append(f"{kind} failed, and nothing excuses it: {messages[0]}")
        if not problems:
            problems = [f"{kind}: {problem}" for kind in self.kinds for problem in self._check(kind, reports.get(kind))]
        inexact = [kind for kind, report in reports.items() if not report["ledger"]["exact"]]
        batches = sum(len(log.batches) for log in self.logs.values())
        return Outcome(
            step,
            0.0,
            problems,
            len(self.source.rows),
            batches,
            self.child.starts - starts,
            failures,
            inexact,
            self.child.usage(),
        )

    def _answer(self, failures: dict[str, list[str]]) -> dict[str, Any]:
        """The reports; starts the child again if it ended."""
        for tries in range(_MOST_RESTARTS):
            with suppress(ChildEnded):
                if tries:
                    self.child.kill()
                    self.child.start()
                    self.child.ask()
                answer = self.child.answer()
                for kind, messages in answer["failures"].items():
                    failures.setdefault(kind, []).extend(messages)
                reports: dict[str, Any] = answer["reports"]
                return reports
        raise ChildEnded

    def _excuse(self, fault: Fault) -> None:
        """Note whose ledger may be inexact from now on, as the documentation says."""
        if fault.ends or fault.stops or fault.forgets:
            self.may_be_inexact.add("shed")
        if fault.forgets:
            self.may_be_inexact.update(UNDER_A_HEARTBEAT)

    def _check(self, kind: str, report: dict[str, Any] | None) -> Problems:
        if report is None:
            return ["it gave no report"]
        log, ledger, inexact = self.logs[kind], report["ledger"], kind in self.may_be_inexact
        log.update()
        published = self.published[kind].table(max(log.batches))
        if kind == "standing":
            problems = check_simple_ledger(ledger, sum(map(len, self.ticks)))
            return problems + check_answers(self.root, self.ticks, published)
        rows = self.source.table()
        if kind == "shed":
            return check_shed(ledger, rows, published, inexact)
        placed = judged(kind, rows, log)
        problems = [] if len(placed) == len(rows) else [f"{len(rows) - len(placed)} rows were not read"]
        problems += check_heartbeats(log) + check_ledger(ledger, placed, inexact)
        return problems + check_results(kind, placed, log, published)

    def clean_up(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.root, ignore_errors=True)
