"""The record store of Kim 2010, Fig. 2: a slack buffer and a window buffer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.order import behind_by_group, by_group, stable_order
from slackwater.kernel.windows.rows import Ints, Rows

BUCKETS = 1024
_STRETCHES = 64  # numpy merges so many in less time than it takes to deal their rows out


class RecordStore:
    """Accepts rows in any order and hands them over in the order of the windowing attribute.

    Insertion is constant a row: the slack buffer is a circular array of buckets, each a stretch of the
    attribute, and a batch is dealt out to them by a radix sort of bucket numbers. A bucket is put in order
    once, when the heartbeat passes it. Rows above the ring wait beside it, and are dealt out when the ring
    reaches them; if many do, the buckets are made wider.

    The window buffer is in the order of the attribute; ``grouped``, it is in that order inside each group, which is
    what windows of groups are made of. ``fresh`` tells which of its rows came with the last release.
    """

    def __init__(self, columns: int, bucket_width: int = 1, *, grouped: bool = False) -> None:
        self.columns = columns
        self.bucket_width = bucket_width
        self.grouped = grouped
        self.window = Rows.none(columns)
        self.fresh: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._ring: list[list[Rows]] = []
        self._low: int | None = None  # the bucket number at the ring's start
        self._beyond: list[Rows] = []
        self.held = 0

    def insert(self, rows: Rows) -> None:
        """Put rows that are not late into the slack buffer."""
        if not len(rows):
            return
        self.held += len(rows)
        self._widen(rows.attribute)
        number = rows.attribute // self.bucket_width  # Kim 2010, Section 3: array indexing by the attribute
        low = int(number.min())
        if self._low is None:
            self._low = low
            self._ring = [[] for _ in range(BUCKETS)]
        elif low < self._low:
            self._rewind(low)
        self._deal(rows, number)

    def release(self, heartbeat: int) -> Rows:
        """The rows below the heartbeat, by attribute, ties in the order of arrival; the window buffer gets them too.

        # differs: a row at the heartbeat waits until the heartbeat is past it, since more of its instant may come.
        """
        if self._low is None or not self.held:
            return self._keep(Rows.none(self.columns))
        last = heartbeat // self.bucket_width
        out: list[Rows] = []
        while self.held:
            end = min(last, self._low + BUCKETS - 1)
            for number in range(self._low, end + 1):
                bucket = self._ring[number % BUCKETS]
                if not bucket:
                    continue
                out += self._empty(number, heartbeat)
            if last < self._low + BUCKETS:
                self._low = max(self._low, last)
                self._draw_beyond()
                break
            if not self._beyond:
                self._low = last
                break
            self._low = min(int(rows.attribute.min()) // self.bucket_width for rows in self._beyond)
            self._draw_beyond()
            if self._low > last:
                break
        released = Rows.concat(out, self.columns)
        self.held -= len(released)
        return self._keep(released)

    def pass_on(self, rows: Rows, heartbeat: int) -> Rows:
        """``insert`` and ``release``; rows that need not wait are not dealt out where there is a shorter way.

        A grouped window buffer puts them in order itself; a few stretches, each in order, are merged.
        """
        if not self.held and len(rows) and int(rows.attribute.max()) < heartbeat:
            if self.grouped:
                return self._keep(rows)
            falls = np.count_nonzero(rows.attribute[1:] < rows.attribute[:-1])
            if falls < _STRETCHES:
                return self._keep(rows.take(np.argsort(rows.attribute, kind="stable")) if falls else rows)
        self.insert(rows)
        return self.release(heartbeat)

    def forget(self, keep: slice | Ints | NDArray[np.bool_]) -> None:
        """Keep only these rows of the window buffer."""
        self.window = self.window.take(keep)

    def slack_rows(self) -> Rows:
        """Everything in the slack buffer, ties in the order of their arrival."""
        return Rows.concat([rows for bucket in [*self._ring, self._beyond] for rows in bucket], self.columns)

    def _keep(self, released: Rows) -> Rows:
        """Into the window buffer. Rows are released once the heartbeat is past them: none is older than those there."""
        if self.grouped:
            self.window, self.fresh = behind_by_group(self.window, by_group(released)[0])
        else:
            old = len(self.window)
            self.window = Rows.concat([self.window, released], self.columns)
            self.fresh = np.arange(len(self.window)) >= old
        return released

    def _empty(self, number: int, heartbeat: int) -> list[Rows]:
        rows = Rows.concat(self._ring[number % BUCKETS], self.columns)
        self._ring[number % BUCKETS] = []
        if (number + 1) * self.bucket_width > heartbeat:
            below = rows.attribute < heartbeat
            rest = rows.take(~below)
            if len(rest):
                self._ring[number % BUCKETS] = [rest]
            rows = rows.take(below)
        if self.bucket_width == 1 or len(rows) < 2:
            return [rows]
        if np.all(rows.attribute[1:] >= rows.attribute[:-1]):
            return [rows]
        return [rows.take(stable_order(rows.attribute, number * self.bucket_width, self.bucket_width))]

    def _deal(self, rows: Rows, number: Ints) -> None:
        assert self._low is not None
        offset = number - self._low
        far = offset >= BUCKETS
        if far.any():
            self._beyond.append(rows.take(far))
            rows, offset = rows.take(~far), offset[~far]
        if not len(rows):
            return
        small = offset.astype(np.uint16)
        counts = np.bincount(small)
        used = np.flatnonzero(counts)
        if len(used) > 1:
            order = np.argsort(small, kind="stable")  # 16 bits: numpy sorts them by radix, in O(n)
            rows = rows.take(order)
        ends = np.cumsum(counts[used])
        start = 0
        for bucket, end in zip(used.tolist(), ends.tolist(), strict=True):
            self._ring[(self._low + bucket) % BUCKETS].append(rows.take(slice(start, end)))
            start = end

    def _draw_beyond(self) -> None:
        if not self._beyond:
            return
        rows = Rows.concat(self._beyond, self.columns)
        self._beyond = []
        self._deal(rows, rows.attribute // self.bucket_width)

    def _widen(self, attribute: Ints) -> None:
        """Widen the buckets if more than a tenth of a batch would not fit the ring: a few may be from the future."""
        place = len(attribute) - 1 - len(attribute) // 10
        most = int(np.partition(attribute, place)[place])
        least = int(attribute.min()) if self._low is None else self._low * self.bucket_width
        if most - least < self.bucket_width * BUCKETS:
            return
        width = 4 * (most - least) // BUCKETS + 1
        if self._low is None:
            self.bucket_width = width
            return
        everything = self._take_all()
        self._low = self._low * self.bucket_width // width
        self.bucket_width = width
        for rows in everything:
            self._deal(rows, rows.attribute // width)

    def _rewind(self, low: int) -> None:
        everything = self._take_all()
        self._low = low
        for rows in everything:
            self._deal(rows, rows.attribute // self.bucket_width)

    def _take_all(self) -> list[Rows]:
        everything = [Rows.concat(bucket, self.columns) for bucket in [*self._in_order(), self._beyond] if bucket]
        self._ring = [[] for _ in range(BUCKETS)]
        self._beyond = []
        return everything

    def _in_order(self) -> list[list[Rows]]:
        assert self._low is not None
        return [self._ring[(self._low + i) % BUCKETS] for i in range(BUCKETS)]
