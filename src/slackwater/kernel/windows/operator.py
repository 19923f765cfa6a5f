"""The window operator of Kim 2010, Fig. 2: record store and window generator under a heartbeat."""

from __future__ import annotations

import json

import numpy as np

from slackwater.kernel.windows.generator import Results, WindowSpec, generate
from slackwater.kernel.windows.landmark import RunningAggregates
from slackwater.kernel.windows.panes import MERGEABLE, pane_columns, to_panes
from slackwater.kernel.windows.record_store import RecordStore
from slackwater.kernel.windows.rows import Ints, Rows

_NOTHING = int(np.iinfo(np.int64).min)


def takes_panes(spec: WindowSpec) -> bool:
    """Whether the rows of a window can be reduced to panes before they wait."""
    known = all(name in MERGEABLE for name, _ in spec.aggregates)
    return spec.landmark is not None and spec.slide is not None and known


def panes_of(spec: WindowSpec, rows: Rows) -> Rows:
    """What a window that takes panes needs of the rows."""
    assert spec.landmark is not None and spec.slide is not None
    return to_panes(rows, spec.landmark, spec.slide)


class WindowOperator:
    """Every window over rows that arrive in any order, each result once, as soon as the heartbeat is past it.

    ``push`` takes rows and the heartbeat that the disorder controller decided after them. Rows below the
    heartbeat in force are late: counted, handed back, and in no result. ``slack`` caps the rows that are held
    back (Kim 2007, Section 4): above it the heartbeat rises to the (slack + 1)-th largest value held, whatever
    the controller says. Memory is the rows of the wait and of one window.

    >>> operator = WindowOperator(WindowSpec(length=30, aggregates=(("max", 0),)), columns=1)
    >>> results, late = operator.push(Rows.of([10, 5, 20], values=([1.0, 7.0, 2.0],)), heartbeat=15)
    >>> results.end, results.aggregates[0], len(late)
    (array([ 5, 10]), array([7., 7.]), 0)
    """

    def __init__(self, spec: WindowSpec, columns: int, *, slack: int | None = None, bucket_width: int = 1) -> None:
        self.spec = spec
        self.slack = slack
        self.in_panes = takes_panes(spec) and not slack  # which is counted in rows
        stored = pane_columns(columns) if self.in_panes else columns
        self.store = RecordStore(stored, bucket_width, grouped=spec.grouped)
        self.heartbeat = _NOTHING
        self.late = 0
        self.on_time = 0
        # How many tuples came before each row of the window buffer (in its group, if tuples are counted so).
        self._seen: Ints = np.zeros(0, dtype=np.int64)
        self._totals: dict[int, int] = {}
        self._running = None if spec.landmark is None else RunningAggregates(spec.aggregates, panes=self.in_panes)

    def push(self, rows: Rows, heartbeat: int | None = None) -> tuple[Results, Rows]:
        """Take rows, then the heartbeat; give the results that are now complete, and the late rows."""
        is_late = rows.attribute < self.heartbeat  # Kim 2010, Section 3; a tie is on time
        late = rows.take(is_late) if is_late.any() else Rows.none(len(rows.values))
        on_time = rows.take(~is_late) if len(late) else rows
        self.late += len(late)
        self.on_time += len(on_time)
        if self.in_panes:
            on_time = panes_of(self.spec, on_time)
        elif self.spec.landmark is not None:
            on_time = on_time.take(on_time.attribute >= self.spec.landmark)
        return self._advance(on_time, self.heartbeat if heartbeat is None else heartbeat), late

    def push_panes(self, panes: Rows, heartbeat: int | None = None) -> Results:
        """The same for rows that were reduced to panes elsewhere (``panes_of``), by whom those late were left out.

        A pane of a step that is complete is late all the same: its step came out, and must not come again.
        """
        is_late = panes.attribute < self.heartbeat
        if is_late.any():
            self.late += int(panes.values[0][is_late].sum())
            panes = panes.take(~is_late)
        self.on_time += int(panes.values[0].sum())
        return self._advance(panes, self.heartbeat if heartbeat is None else heartbeat)

    def _advance(self, rows: Rows, heartbeat: int) -> Results:
        heartbeat = max(heartbeat, self.heartbeat)  # Kim 2010, Section 3: it never retreats
        if self.slack:
            self.store.insert(rows)
            heartbeat = max(heartbeat, self._least_of_slack(self.slack))
            fresh = self.store.release(heartbeat)
        else:
            fresh = self.store.pass_on(rows, heartbeat)
        before, self.heartbeat = self.heartbeat, heartbeat
        if self._running is not None:
            return self._since_landmark(self._running)
        if self.spec.tuples:
            self._count(fresh)
        after = None if before == _NOTHING else before
        results = generate(self.spec, self.store.window, self.store.fresh, after, heartbeat, self._seen)
        self._forget()
        return results

    def _least_of_slack(self, slack: int) -> int:
        """The (slack + 1)-th largest value held: what is below it need not wait."""
        if self.store.held <= slack:
            return _NOTHING
        held = self.store.slack_rows().attribute
        place = len(held) - slack - 1
        return int(np.partition(held, place)[place])  # Kim 2007, Section 4

    def _since_landmark(self, running: RunningAggregates) -> Results:
        assert self.spec.landmark is not None
        window, origin, slide = self.store.window, self.spec.landmark, self.spec.slide
        if slide is None:
            # One result per row, ties included: the aggregates after the last row of the instant.
            ends, groups, found = running.add(window, window.attribute)
            line = np.stack([ends, groups], axis=1).tolist()
            place = {(end, group): i for i, (end, group) in enumerate(line)}
            pairs = zip(window.attribute.tolist(), window.keys.tolist(), strict=True)
            rows = np.array([place[pair] for pair in pairs], dtype=np.int64)
            ends, groups, found = ends[rows], groups[rows], tuple(column[rows] for column in found)
            self.store.forget(slice(len(window), None))
        else:
            steps = origin + ((window.attribute - origin) // slide + 1) * slide
            ready = int(np.searchsorted(steps, self.heartbeat, side="right"))
            ends, groups, found = running.add(window.take(slice(0, ready)), steps[:ready])
            self.store.forget(slice(ready, None))
        return Results(np.full(len(ends), origin), ends, groups, found)

    def _count(self, fresh: Rows) -> None:
        if not len(fresh):
            return
        if not self.spec.per_key:
            total = self._totals.get(0, 0)
            numbers = np.arange(total, total + len(fresh))
            self._totals[0] = total + len(fresh)
        else:
            keys, codes = np.unique(fresh.keys, return_inverse=True)
            order = np.argsort(codes, kind="stable")
            first = np.searchsorted(codes[order], np.arange(len(keys)))
            numbers = np.empty(len(fresh), dtype=np.int64)
            numbers[order] = np.arange(len(fresh)) - first[codes[order]]
            before = np.array([self._totals.get(int(key), 0) for key in keys], dtype=np.int64)
            numbers += before[codes]
            counts = np.bincount(codes, minlength=len(keys))
            for key, count, start in zip(keys.tolist(), counts.tolist(), before.tolist(), strict=True):
                self._totals[key] = start + count
        self._seen = np.concatenate([self._seen, numbers])

    def _forget(self) -> None:
        """Drop the rows that no coming window can hold."""
        window = self.store.window
        if not len(window):
            return
        if self.spec.tuples:
            if not self.spec.per_key:
                keep: slice | Ints = slice(max(0, len(window) - self.spec.length + 1), None)
            else:
                totals = np.array([self._totals[int(key)] for key in window.keys], dtype=np.int64)
                keep = np.flatnonzero(self._seen > totals - self.spec.length)
            self.store.forget(keep)
            self._seen = self._seen[keep]
            return
        if self.spec.slide is None:
            least = self.heartbeat - self.spec.length + 1
        else:
            least = ((self.heartbeat - self.spec.length) // self.spec.slide + 1) * self.spec.slide
        if int(window.attribute.min()) < least:
            self.store.forget(window.attribute >= least)

    def to_bytes(self) -> bytes:
        """Everything that must survive, as bytes."""
        parts = [self.store.window.to_bytes(), self.store.slack_rows().to_bytes(), self._seen.tobytes()]
        head = {
            "heartbeat": int(self.heartbeat),
            "late": self.late,
            "on_time": self.on_time,
            "totals": list(self._totals.items()),
            "running": None if self._running is None else self._running.snapshot(),
            "sizes": [len(part) for part in parts],
        }
        return json.dumps(head).encode() + b"\n" + b"".join(parts)

    def resume(self, data: bytes) -> WindowOperator:
        """Go on from what ``to_bytes`` wrote."""
        start = data.index(b"\n") + 1
        head = json.loads(data[:start])
        cuts = np.cumsum([start, *head["sizes"]])
        window, slack, seen = (data[cuts[i] : cuts[i + 1]] for i in range(3))
        self.store.window = Rows.from_bytes(window)
        self.store.insert(Rows.from_bytes(slack))
        self._seen = np.frombuffer(seen, np.int64)
        self._totals = {int(key): int(count) for key, count in head["totals"]}
        if self._running is not None:
            self._running.resume(head["running"])
        self.heartbeat, self.late, self.on_time = head["heartbeat"], head["late"], head["on_time"]
        return self
