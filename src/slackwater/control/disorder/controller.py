"""The loop around a method: what a heartbeat must obey whatever the method says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.control.disorder.cause import Cause, cause_of
from slackwater.control.disorder.protocol import UNKNOWN, Batch, DisorderMethod, Floats, Ints
from slackwater.promises import Completeness
from slackwater.units import MINUTE_MS

FUTURE_TOLERANCE_MS = MINUTE_MS
FUTURE_TOLERANCE_FACTOR = 20.0
"""Ahead of the clock by so many times the usual distance from it: no longer a value that comes early."""
USUAL_STEP = 0.02


@dataclass(frozen=True, slots=True)
class Decision:
    """The heartbeat from now on, and why."""

    heartbeat: float
    wait: float
    cause: Cause


class DisorderController:
    """Keeps one completeness promise: the heartbeat never retreats, and no row from the future moves it.

    From the future is a row that is ahead of the arrival clock by more than a minute and by more than twenty
    times the usual distance between the two (scheduled times may come hours early).

    It costs what its method costs. It cannot keep the promise where ``max_wait`` forbids the wait that the
    stream needs; the decision then says "max_wait". While a stream with a clock is silent the heartbeat stays
    at or below the front (the highest trusted value), since a stalled stream looks the same; after
    ``idle_after`` the silence is taken for idleness and the heartbeat follows the clock again, that much
    behind it, or as much as the wait was when the last row came, if that is more.
    """

    def __init__(self, promise: Completeness, method: DisorderMethod) -> None:
        self.promise = promise
        self.method = method
        self._heartbeat = UNKNOWN
        self._front = UNKNOWN
        self._last_row_at = UNKNOWN
        self._wait = 0.0
        self._usual_ms = FUTURE_TOLERANCE_MS / FUTURE_TOLERANCE_FACTOR

    @property
    def heartbeat(self) -> float:
        """The heartbeat in force."""
        return self._heartbeat

    def observe(self, batch: Batch) -> None:
        """Learn from rows that have just been judged."""
        trusted = self._trusted(batch)
        if trusted.rows == 0 and trusted.punctuations is None:
            return
        if len(trusted.values):
            self._front = max(self._front, float(trusted.values.max()))
        if trusted.clock is not None:
            self._last_row_at = max(self._last_row_at, trusted.clock)
        self.method.observe(trusted)

    def decide(self, clock: float | None) -> Decision:
        """The heartbeat to put in force, given the arrival clock."""
        proposed = self.method.heartbeat(clock)
        heartbeat, cause = proposed, cause_of(self.method)
        if clock is not None:
            if heartbeat < clock - self.promise.max_wait_ms:
                heartbeat, cause = clock - self.promise.max_wait_ms, Cause("max-wait")
            if heartbeat > clock - self.promise.min_wait_ms:
                heartbeat, cause = clock - self.promise.min_wait_ms, Cause("min-wait")
            if not getattr(self.method, "vouched", False):
                heartbeat, cause = self._mind_silence(heartbeat, cause, clock)
            if clock <= self._last_row_at and math.isfinite(heartbeat):
                self._wait = clock - max(heartbeat, self._heartbeat)
        if math.isnan(heartbeat) or heartbeat <= self._heartbeat:
            cause = Cause("held") if heartbeat < self._heartbeat else cause
            heartbeat = self._heartbeat
        self._heartbeat = heartbeat
        reference = self._front if clock is None else clock
        wait = reference - heartbeat if math.isfinite(heartbeat) else math.inf
        return Decision(heartbeat, wait, cause)

    def _mind_silence(self, heartbeat: float, cause: Cause, clock: float) -> tuple[float, Cause]:
        silent_ms = clock - self._last_row_at
        if not math.isfinite(self._front) or heartbeat <= self._front:
            if math.isfinite(self._front) and silent_ms > self.promise.idle_after_ms:
                idle = clock - max(self.promise.idle_after_ms, self.promise.min_wait_ms, self._wait)
                if idle > heartbeat:
                    return idle, Cause("idle")
            return heartbeat, cause
        if silent_ms > self.promise.idle_after_ms:
            idle = min(heartbeat, clock - self.promise.idle_after_ms)
            return max(idle, self._front), Cause("idle")
        return self._front, Cause("silent")

    def _trusted(self, batch: Batch) -> Batch:
        """The batch without rows whose clock runs ahead of ours: they may not move anything but themselves."""
        if batch.clock is None or not len(batch.values):
            return batch
        tolerance = max(FUTURE_TOLERANCE_MS, FUTURE_TOLERANCE_FACTOR * self._usual_ms)
        if batch.values.max() <= batch.clock + tolerance:
            self._learn_usual_distance(np.abs(batch.clock - batch.values), batch.weights)
            return batch
        keep = batch.values <= batch.clock + tolerance
        self._learn_usual_distance(
            np.abs(batch.clock - batch.values[keep]), None if batch.weights is None else batch.weights[keep]
        )
        return Batch(
            batch.values[keep],
            None if batch.arrivals is None else batch.arrivals[keep],
            None if batch.weights is None else batch.weights[keep],
            None if batch.sources is None else batch.sources[keep],
            batch.punctuations,
            batch.clock,
            batch.late,
        )

    def _learn_usual_distance(self, distances: Floats, weights: Ints | None) -> None:
        """Move towards the median by its sign alone, so that no single row, however wrong, moves it far."""
        rows = len(distances) if weights is None else int(weights.sum())
        if rows:
            beyond = distances > self._usual_ms
            share = float(np.count_nonzero(beyond) if weights is None else weights[beyond].sum()) / rows
            step = USUAL_STEP * min(rows, 50) * (2.0 * share - 1.0)
            self._usual_ms = max(1.0, self._usual_ms * math.exp(step))

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on after a restart, as JSON."""
        return {
            "heartbeat": _finite(self._heartbeat),
            "front": _finite(self._front),
            "last_row_at": _finite(self._last_row_at),
            "wait": self._wait,
            "usual_ms": self._usual_ms,
            "method": self.method.name,
            "learned": self.method.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot; what another method had learned is left aside, the heartbeat is not."""
        self.raise_to(_number(snapshot["heartbeat"]))
        self._front = _number(snapshot["front"])
        self._last_row_at = _number(snapshot["last_row_at"])
        self._wait = float(snapshot.get("wait", 0.0))
        self._usual_ms = float(snapshot.get("usual_ms", self._usual_ms))
        if snapshot["method"] == self.method.name:
            self.method.resume(snapshot["learned"])

    def raise_to(self, heartbeat: float) -> None:
        """Take over a heartbeat that is already in force elsewhere (a checkpoint's, after a restart)."""
        self._heartbeat = max(self._heartbeat, heartbeat)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return UNKNOWN if value is None else value
