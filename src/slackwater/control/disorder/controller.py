"""The controller around a method. It enforces the rules that hold for the heartbeat of every method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slackwater.control.disorder.cause import Cause, cause_of
from slackwater.control.disorder.protocol import UNKNOWN, Batch, DisorderMethod, Floats, Ints, from_json, to_json
from slackwater.control.policy import Policy, Room
from slackwater.promises import Completeness
from slackwater.units import MINUTE_MS

FUTURE_TOLERANCE_MS = MINUTE_MS
FUTURE_TOLERANCE_FACTOR = 20.0
"""A row comes from the future if it is ahead of the clock by more than this multiple of the usual distance."""
USUAL_STEP = 0.02
"""The largest relative change of the usual distance per row."""
MOST_STEPS = 50
"""At most this many rows of one batch move the usual distance."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A new heartbeat, the wait that it means, and its cause.

    ``rising`` is the part of the proposal that is higher by the same amount for a later clock, ``ceiling`` the part
    that is not; the proposal is the lower of the two. If ``follows_clock`` is false, all of it stands. ``room`` is how
    the rows of the next batch may raise the heartbeat.
    """

    heartbeat: float
    wait: float
    cause: Cause
    clock: float | None = None
    rising: float = UNKNOWN
    ceiling: float = math.inf
    follows_clock: bool = False
    room: Room | None = None

    def policy(self, wall: float, reach: float) -> Policy | None:
        """The decision as a policy for batches planned after the time ``wall``; None for a stream without a clock."""
        if self.clock is None:
            return None
        return Policy(self.clock, wall, self.rising, reach if self.follows_clock else 0.0, self.ceiling, self.room)


class DisorderController:
    """Keeps one completeness promise. The heartbeat never retreats, and rows from the future never move it.

    A row comes from the future if it is ahead of the arrival clock by more than a minute and by more than 20 times the
    usual distance between values and clock. (Scheduled times may legitimately be hours ahead.)

    While a stream with a clock is silent, the heartbeat stays at or below the front, the highest trusted value: the
    stream may have stalled. After ``idle_after`` the stream counts as idle and the heartbeat follows the clock again.
    It is then behind the clock by ``idle_after``, ``min_wait`` or the wait at the last row, whichever is longest.

    Costs what the method costs. The promise breaks if ``max_wait`` is shorter than the wait that the stream needs; the
    cause of the decision is then ``max-wait``.
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
        """Learn from a batch whose late rows have been counted."""
        trusted = self._trusted(batch)
        if trusted.rows == 0 and trusted.punctuations is None:
            return
        if len(trusted.values):
            self._front = max(self._front, float(trusted.values.max()))
        if trusted.clock is not None:
            self._last_row_at = max(self._last_row_at, trusted.clock)
        self.method.observe(trusted)

    def decide(self, clock: float | None) -> Decision:
        """Decide the heartbeat for the arrival clock ``clock``; None means that the stream has no clock."""
        heartbeat = self.method.heartbeat(clock)
        cause = cause_of(self.method)
        follows = getattr(self.method, "follows_clock", False) and clock is not None
        rising, ceiling = getattr(self.method, "rising", heartbeat), getattr(self.method, "ceiling", math.inf)
        room: Room | None = getattr(self.method, "room", None)
        if room is not None:
            room = replace(room, wait=max(room.wait, self.promise.min_wait_ms))
        if clock is not None:
            if heartbeat < clock - self.promise.max_wait_ms:
                heartbeat, cause, follows = clock - self.promise.max_wait_ms, Cause("max-wait"), True
                rising, ceiling = heartbeat, math.inf
                room = Room(self.promise.max_wait_ms, 0.0) if math.isfinite(self._front) else None
            if heartbeat > clock - self.promise.min_wait_ms:
                heartbeat, cause, follows = clock - self.promise.min_wait_ms, Cause("min-wait"), True
                rising = heartbeat
            if not getattr(self.method, "vouched", False):
                limited, cause = self._limit_while_silent(heartbeat, cause, clock)
                if limited != heartbeat:
                    heartbeat = rising = limited
                    # A batch with rows shows that the stream moves, so the front will move with the clock.
                    if clock > self._last_row_at:
                        follows, ceiling = False, math.inf
            if clock <= self._last_row_at and math.isfinite(heartbeat):
                self._wait = clock - max(heartbeat, self._heartbeat)
        if not heartbeat > self._heartbeat:
            cause = Cause("held") if heartbeat < self._heartbeat else cause
            heartbeat = self._heartbeat
        self._heartbeat = heartbeat
        reference = self._front if clock is None else clock
        wait = reference - heartbeat if math.isfinite(heartbeat) else math.inf
        rising = UNKNOWN if math.isnan(rising) else rising
        return Decision(heartbeat, wait, cause, clock, rising, ceiling, follows, room)

    def _limit_while_silent(self, heartbeat: float, cause: Cause, clock: float) -> tuple[float, Cause]:
        """Keep the heartbeat at the front while the stream is silent, and move it with the clock once it is idle."""
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
        """The batch without its rows from the future."""
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
        return replace(
            batch,
            values=batch.values[keep],
            arrivals=None if batch.arrivals is None else batch.arrivals[keep],
            weights=None if batch.weights is None else batch.weights[keep],
            sources=None if batch.sources is None else batch.sources[keep],
        )

    def _learn_usual_distance(self, distances: Floats, weights: Ints | None) -> None:
        """Step towards the median distance. A step depends only on its sign, so one wrong row cannot move it far."""
        rows = len(distances) if weights is None else int(weights.sum())
        if rows:
            above = distances > self._usual_ms
            share = float(np.count_nonzero(above) if weights is None else weights[above].sum()) / rows
            step = USUAL_STEP * min(rows, MOST_STEPS) * (2.0 * share - 1.0)
            self._usual_ms = max(1.0, self._usual_ms * math.exp(step))

    def snapshot(self) -> dict[str, Any]:
        """The state of the controller and its method, as JSON."""
        return {
            "heartbeat": to_json(self._heartbeat),
            "front": to_json(self._front),
            "last_row_at": to_json(self._last_row_at),
            "wait": self._wait,
            "usual_ms": self._usual_ms,
            "method": self.method.name,
            "learned": self.method.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore a snapshot. From a snapshot of another method only the controller's own state is taken."""
        self.raise_to(from_json(snapshot["heartbeat"]))
        self._front = from_json(snapshot["front"])
        self._last_row_at = from_json(snapshot["last_row_at"])
        self._wait = float(snapshot.get("wait", 0.0))
        self._usual_ms = float(snapshot.get("usual_ms", self._usual_ms))
        if snapshot["method"] == self.method.name:
            self.method.resume(snapshot["learned"])

    def raise_to(self, heartbeat: float) -> None:
        """Raise the heartbeat to one that is already in force, such as the checkpoint's after a restart."""
        self._heartbeat = max(self._heartbeat, heartbeat)
