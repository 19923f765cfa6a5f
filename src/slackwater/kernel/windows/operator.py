"""The window operator of Kim 2010, Fig. 2: window buffer and window generator under a heartbeat."""

from __future__ import annotations

import json

import numpy as np

from slackwater.kernel.windows.generator import Results, WindowSpec, generate
from slackwater.kernel.windows.landmark import RunningAggregates, Steps
from slackwater.kernel.windows.panes import MERGEABLE, pane_columns, to_panes
from slackwater.kernel.windows.rows import Ints, Rows
from slackwater.kernel.windows.window_buffer import WindowBuffer

_NO_HEARTBEAT = int(np.iinfo(np.int64).min)


def takes_panes(spec: WindowSpec) -> bool:
    """Whether the operator of this window takes panes instead of rows: a landmark, SLIDE and mergeable aggregates."""
    mergeable = all(name in MERGEABLE for name, _ in spec.aggregates)
    return spec.landmark is not None and spec.slide is not None and mergeable


def panes_of(spec: WindowSpec, rows: Rows) -> Rows:
    """Reduce rows to the panes that the operator of this window takes."""
    assert spec.landmark is not None and spec.slide is not None
    return to_panes(rows, spec.landmark, spec.slide)


class WindowOperator:
    """Computes every window once, as soon as the heartbeat has passed it.

    ``advance`` takes the rows that the heartbeat has passed since the last call, in any order. The caller holds back
    rows above the heartbeat. If ``takes_panes(spec)``, rows are panes (``panes_of``). ``columns`` is the number of
    inputs of the aggregates. The state is the rows of one window, or running aggregates for a landmark window.

    >>> operator = WindowOperator(WindowSpec(length=30, aggregates=(("max", 0),)), columns=1)
    >>> results = operator.advance(Rows.of([10, 5], values=([1.0, 7.0],)), heartbeat=15)
    >>> results.end, results.aggregates[0]
    (array([ 5, 10]), array([7., 7.]))
    """

    def __init__(self, spec: WindowSpec, columns: int) -> None:
        self.spec = spec
        panes = takes_panes(spec)
        self.buffer = WindowBuffer(pane_columns(columns) if panes else columns, grouped=spec.grouped)
        self.heartbeat = _NO_HEARTBEAT
        # For each row in the buffer, the number of tuples before it (in its group, if tuples are counted per group).
        self._tuples_before: Ints = np.zeros(0, dtype=np.int64)
        self._tuple_totals: dict[int, int] = {}
        self._running = None if spec.landmark is None else RunningAggregates(spec.aggregates, panes=panes)

    def advance(self, rows: Rows, heartbeat: int) -> Results:
        """Take the rows that the heartbeat has passed; returns the results that are now complete.

        Rows below the heartbeat of the last call are late and left out: their windows may have been emitted.
        """
        before, self.heartbeat = self.heartbeat, max(heartbeat, self.heartbeat)  # Kim 2010, Section 3: never retreats
        # differs: a row at the heartbeat waits until the heartbeat is past it, since more rows of its instant may come
        assert not len(rows) or int(rows.attribute.max()) < self.heartbeat, "a row that must still wait"
        late = rows.attribute < before  # Kim 2010, Section 3; a tie is on time
        if late.any():
            rows = rows.take(~late)
        if self.spec.landmark is not None:
            rows = rows.take(rows.attribute >= self.spec.landmark)
        added = self.buffer.append(rows)
        if self._running is not None:
            return self._since_landmark(self._running)
        if self.spec.tuples:
            self._number_tuples(added)
        after = None if before == _NO_HEARTBEAT else before
        results = generate(self.spec, self.buffer.rows, self.buffer.fresh, after, self.heartbeat, self._tuples_before)
        self._forget()
        return results

    def _since_landmark(self, running: RunningAggregates) -> Results:
        assert self.spec.landmark is not None
        rows, origin, slide = self.buffer.rows, self.spec.landmark, self.spec.slide
        if slide is None:
            steps = _per_row(running.add(rows, rows.attribute), rows)
            self.buffer.retain(slice(len(rows), None))
        else:
            ends = origin + ((rows.attribute - origin) // slide + 1) * slide
            ready = int(np.searchsorted(ends, self.heartbeat, side="right"))
            steps = running.add(rows.take(slice(0, ready)), ends[:ready])
            self.buffer.retain(slice(ready, None))
        return Results(np.full(len(steps.ends), origin), steps.ends, steps.keys, steps.aggregates)

    def _number_tuples(self, added: Rows) -> None:
        """Count the added rows, in the whole stream or in their group, and extend ``_tuples_before``."""
        if not len(added):
            return
        if not self.spec.per_key:
            total = self._tuple_totals.get(0, 0)
            numbers = np.arange(total, total + len(added))
            self._tuple_totals[0] = total + len(added)
        else:
            keys, codes = np.unique(added.keys, return_inverse=True)
            order = np.argsort(codes, kind="stable")
            first = np.searchsorted(codes[order], np.arange(len(keys)))
            numbers = np.empty(len(added), dtype=np.int64)
            numbers[order] = np.arange(len(added)) - first[codes[order]]
            before = np.array([self._tuple_totals.get(int(key), 0) for key in keys], dtype=np.int64)
            numbers += before[codes]
            counts = np.bincount(codes, minlength=len(keys))
            for key, count, start in zip(keys.tolist(), counts.tolist(), before.tolist(), strict=True):
                self._tuple_totals[key] = start + count
        self._tuples_before = np.concatenate([self._tuples_before, numbers])

    def _forget(self) -> None:
        """Remove the rows that no coming window can contain."""
        rows = self.buffer.rows
        if not len(rows):
            return
        if self.spec.tuples:
            if not self.spec.per_key:
                keep: slice | Ints = slice(max(0, len(rows) - self.spec.length + 1), None)
            else:
                totals = np.array([self._tuple_totals[int(key)] for key in rows.keys], dtype=np.int64)
                keep = np.flatnonzero(self._tuples_before > totals - self.spec.length)
            self.buffer.retain(keep)
            self._tuples_before = self._tuples_before[keep]
            return
        if self.spec.slide is None:
            least = self.heartbeat - self.spec.length + 1
        else:
            least = ((self.heartbeat - self.spec.length) // self.spec.slide + 1) * self.spec.slide
        if int(rows.attribute.min()) < least:
            self.buffer.retain(rows.attribute >= least)

    def to_bytes(self) -> bytes:
        """The whole state as bytes."""
        rows = self.buffer.rows.to_bytes()
        head = {
            "heartbeat": int(self.heartbeat),
            "tuple_totals": list(self._tuple_totals.items()),
            "running": None if self._running is None else self._running.snapshot(),
            "rows_size": len(rows),
        }
        return b"".join([json.dumps(head).encode(), b"\n", rows, self._tuples_before.tobytes()])

    def resume(self, data: bytes) -> WindowOperator:
        """Continue from what ``to_bytes`` wrote."""
        start = data.index(b"\n") + 1
        head = json.loads(data[:start])
        end = start + head["rows_size"]
        self.buffer.rows = Rows.from_bytes(data[start:end])
        self._tuples_before = np.frombuffer(data[end:], np.int64)
        self._tuple_totals = {int(key): int(count) for key, count in head["tuple_totals"]}
        if self._running is not None:
            self._running.resume(head["running"])
        self.heartbeat = head["heartbeat"]
        return self


def _per_row(steps: Steps, rows: Rows) -> Steps:
    """One result per row. Rows of the same instant share the aggregates after the last of them."""
    index = {pair: i for i, pair in enumerate(zip(steps.ends.tolist(), steps.keys.tolist(), strict=True))}
    pairs = zip(rows.attribute.tolist(), rows.keys.tolist(), strict=True)
    chosen = np.array([index[pair] for pair in pairs], dtype=np.int64)
    return Steps(steps.ends[chosen], steps.keys[chosen], tuple(column[chosen] for column in steps.aggregates))
