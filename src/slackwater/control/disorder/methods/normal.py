"""The method of Kim, Kim and Kim (2012): a buffer of n rows, with n estimated from a normal model of the delays."""

from __future__ import annotations

import heapq
import inspect
import math
from collections import deque
from typing import Any, ClassVar, Literal

import numpy as np

from slackwater.control.disorder.methods.adaptive_max_delay import AdaptiveMaxDelay
from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats, Ints, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.normal_model import LEAST_ROWS, critical_point, rows_to_hold
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.control.disorder.support.top_rows import TopRows
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness
from slackwater.units import SECOND_MS

ESTIMATE_EVERY = 1_000
SAMPLE_EVERY = 10
SAMPLES = 100
MOST_ROWS = 1_000_000
FALLBACK_RATIO = 0.001  # Kim 2012, §3.2: D ≤ 0.1 %
HIGH_RATE_PER_S = 100.0  # Kim 2012, above Eq. (12)
_RESERVOIR_TURNS = 20  # a row survives that many rounds of replacements with a chance of e to the power −20


@register
class Normal(RowMethod):
    """Buffers the n rows with the highest values; the heartbeat is the lowest of them (Kim 2012, Algorithm 1).

    - ``estimate_every`` is P_e, ``sample_every`` is P_s and ``samples`` is M of the paper, all in rows. If fewer than
      P_e rows arrive per second, n is estimated every second.
    - ``equation`` selects Eq. (11) or (12) for n; "auto" uses (12) above 100 rows per second.
    - ``reservoir`` draws the sample with a biased reservoir instead of the latest rows. ``seed`` seeds it, and on Spark
      also the choice of the sampled rows, as the order of rows within a micro-batch is unknown there.
    - ``fallback`` uses ``adaptive-max-delay`` instead if D ≤ 0.1 %, as the paper does.

    There is no heartbeat before the first estimate. Costs a heap of n values. The method assumes normal delays:
    heavier tails, and changes within P_e rows, break the promise. A small D needs a large buffer.

    >>> from slackwater.control.disorder import Batch
    >>> method = Normal(Completeness(0.01), estimate_every=100, sample_every=1)
    >>> arrivals = np.arange(200.0)
    >>> method.observe(Batch(arrivals, arrivals, clock=199.0))
    >>> method.heartbeat(199.0)  # no disorder: n = 30
    170.0
    """

    name: ClassVar[str] = "normal"

    def __init__(
        self,
        promise: Completeness,
        *,
        estimate_every: int = ESTIMATE_EVERY,
        sample_every: int = SAMPLE_EVERY,
        samples: int = SAMPLES,
        equation: Literal["auto", 11, 12] = "auto",
        reservoir: bool = False,
        seed: int = 0,
        fallback: bool = True,
    ) -> None:
        super().__init__(promise)
        if min(estimate_every, sample_every) < 1 or samples < max(2, estimate_every / sample_every):
            raise InvalidOption(
                "invalid-sampling",
                f"estimate_every={estimate_every!r}, sample_every={sample_every!r}, samples={samples!r}",
                "give positive periods, and at least estimate_every / sample_every samples (Kim 2012, §3.3)",
            )
        if equation not in ("auto", 11, 12):
            raise InvalidOption("invalid-equation", f"unknown equation={equation!r}", "use 11, 12 or 'auto'")
        self._estimate_every, self._sample_every, self._samples = estimate_every, sample_every, samples
        self._equation, self._reservoir, self._seed = equation, reservoir, seed
        self._z = critical_point(promise.drop_ratio)
        if fallback and promise.drop_ratio <= FALLBACK_RATIO:
            given: dict[str, Any] = {"estimate_every": estimate_every, "sample_every": sample_every, "samples": samples}
            given |= {"equation": equation, "reservoir": reservoir, "seed": seed}
            _refuse_without_model(given)
        self._fallback = AdaptiveMaxDelay(promise) if fallback and promise.drop_ratio <= FALLBACK_RATIO else None
        self._buffer: list[float] = []
        self._top = TopRows()
        self._clock = UNKNOWN
        self._sample: deque[tuple[float, float, int]] = deque(maxlen=samples)
        self._count = 0
        self._size: float = math.inf
        self._earliest = UNKNOWN
        self._estimated_at = UNKNOWN
        self._interval = 0.0

    def observe(self, batch: Batch) -> None:
        if self._fallback is not None:
            self._fallback.observe(batch)
        else:
            super().observe(batch)

    def trail(self, values: Floats, arrivals: Floats | None) -> Floats:
        return super().trail(values, arrivals) if self._fallback is None else self._fallback.trail(values, arrivals)

    def heartbeat(self, clock: float | None) -> float:
        return self._earliest if self._fallback is None else self._fallback.heartbeat(clock)

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        buffer, earliest, count = self._buffer, self._earliest, self._count
        sample_every, estimate_every = self._sample_every, self._estimate_every
        estimated_at = float(reference[0]) if self._estimated_at == UNKNOWN else self._estimated_at
        for value, at in zip(values.tolist(), reference.tolist(), strict=True):
            if count % sample_every == 0:
                self._take_sample(at - value, at, count)
            by_rows = count > 0 and count % estimate_every == 0
            # Kim 2012, §3.3: every second if fewer than P_e rows arrive per second.
            by_time = self._has_clock and at - estimated_at >= SECOND_MS and self._interval * estimate_every > SECOND_MS
            first = self._size == math.inf and len(self._sample) == LEAST_ROWS
            if (by_rows or by_time or first) and len(self._sample) > 1:
                self._estimate_from_sample(at, count)
                estimated_at = at
                while len(buffer) > self._size:  # Algorithm 1, line (5)
                    heapq.heappop(buffer)
                if buffer:
                    earliest = max(earliest, buffer[0])  # Algorithm 1, line (6)
            if value > earliest:  # Algorithm 1, lines (8) to (13)
                heapq.heappush(buffer, value)
                if len(buffer) > self._size:
                    heapq.heappop(buffer)
                    earliest = buffer[0]
            count += 1
            if heartbeats is not None:
                heartbeats.append(earliest)
        self._earliest, self._count, self._estimated_at = earliest, count, estimated_at

    def _take_sample(self, delay: float, at: float, count: int) -> None:
        if self._reservoir and len(self._sample) == self._samples:
            # Aggarwal's biased reservoir: a new row always enters and replaces a random one.
            index = np.random.default_rng([self._seed, count]).integers(self._samples)
            self._sample[int(index)] = (delay, at, count)
        else:
            self._sample.append((delay, at, count))

    def _estimate_from_sample(self, at: float, count: int) -> None:
        delays = np.array([entry[0] for entry in self._sample])
        oldest = min(self._sample, key=lambda entry: entry[2])
        rows = max(count - oldest[2], 1)
        self._set_size(float(delays.std()), max(at - oldest[1], 0.0) / rows)  # Algorithm 1, line (3)

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        rows = int(weights.sum())
        before, self._clock = self._clock, clock
        self._sample_cells(clock - values, weights, clock if before == UNKNOWN else before, clock)
        self._count += rows
        if self._estimated_at == UNKNOWN:
            self._estimated_at = clock
        by_rows = self._count // self._estimate_every > (self._count - rows) // self._estimate_every
        by_time = clock - self._estimated_at >= SECOND_MS and self._interval * self._estimate_every > SECOND_MS
        first = self._size == math.inf and len(self._sample) >= LEAST_ROWS
        if (by_rows or by_time or first) and len(self._sample) > 1:
            self._estimate_from_sample(clock, self._count)
            self._estimated_at = clock
        keep = MOST_ROWS if self._size == math.inf else int(self._size)
        self._top.add(values, weights, keep)
        if self._size < math.inf:
            self._earliest = max(self._earliest, self._top.nth(keep))

    def _sample_cells(self, delays: Floats, weights: Ints, before: float, clock: float) -> None:
        """Sample every P_s-th row of a batch whose order is unknown: as many of its rows, drawn at random."""
        rows, period = int(weights.sum()), self._sample_every
        numbers = np.arange(-(-self._count // period) * period, self._count + rows, period)
        # Older ones would be replaced: certainly by the latest M, nearly so in a reservoir.
        numbers = numbers[-self._samples * (_RESERVOIR_TURNS if self._reservoir else 1) :]
        if not len(numbers):
            return
        draw = np.random.default_rng([self._seed, self._count])
        chosen = draw.choice(len(delays), len(numbers), p=weights / rows)
        arrivals = before + (clock - before) * (numbers - self._count + 1) / rows
        for delay, at, number in zip(delays[chosen].tolist(), arrivals.tolist(), numbers.tolist(), strict=True):
            self._take_sample(delay, at, number)

    def _set_size(self, sd: float, interval: float) -> None:
        self._interval = interval
        per_s = SECOND_MS / interval if interval > 0 else math.inf
        if interval > 0 and (self._equation == 12 or (self._equation == "auto" and per_s > HIGH_RATE_PER_S)):
            rows = math.sqrt(2.0) * self._z * sd / interval  # Kim 2012, Eq. (12)
        else:
            rows = rows_to_hold(self._z, sd, interval)  # Kim 2012, Eq. (11)
        self._size = min(max(math.ceil(rows) if math.isfinite(rows) else MOST_ROWS, LEAST_ROWS), MOST_ROWS)

    def snapshot(self) -> dict[str, Any]:
        if self._fallback is not None:
            return self._fallback.snapshot()
        return {
            "buffer": list(self._buffer),
            "top": self._top.snapshot(),
            "clock": to_json(self._clock),
            "sample": [list(entry) for entry in self._sample],
            "count": self._count,
            "size": None if self._size == math.inf else self._size,
            "earliest": to_json(self._earliest),
            "estimated_at": to_json(self._estimated_at),
            "interval": self._interval,
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        if self._fallback is not None:
            self._fallback.resume(snapshot)
            return
        self._buffer = list(snapshot["buffer"])
        heapq.heapify(self._buffer)
        self._top.resume(snapshot["top"])
        self._clock = from_json(snapshot.get("clock"))
        self._sample = deque(((d, at, int(c)) for d, at, c in snapshot["sample"]), maxlen=self._samples)
        self._count, self._interval = snapshot["count"], snapshot["interval"]
        self._size = math.inf if snapshot["size"] is None else snapshot["size"]
        self._earliest, self._front = from_json(snapshot["earliest"]), from_json(snapshot["front"])
        self._estimated_at = from_json(snapshot["estimated_at"])


def _refuse_without_model(given: dict[str, Any]) -> None:
    """Refuse options of the model where ``adaptive-max-delay`` runs instead of it."""
    for option, value in given.items():
        if value != inspect.signature(Normal).parameters[option].default:
            raise InvalidOption(
                "option-not-used",
                f"{option}={value!r} has no effect at a drop ratio of 0.1% or less, where adaptive-max-delay runs",
                "add fallback=False",
            )
