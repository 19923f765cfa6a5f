"""The processor time that a shard may use for evaluations in one micro-batch of a live stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

EVALUATION_RATIO = 0.8
"""Of the usual time between two micro-batches. The rest is for reading rows, writing state, and Spark."""

_TICKS = 16
_LIVE_PACE = 1.5  # the stream's time may gain on the clock that much, as when a source catches up


@dataclass(frozen=True, slots=True)
class Processor:
    """What a shard has of a processor: ``share`` of one, and a clock that measures the processor time used."""

    share: float
    clock_ms: Callable[[], float]


class TickBudget:
    """Compares the time of the streams with the clock, and gives a budget while they move together.

    In a replay, and while a backlog is read, the time of the streams runs faster than the clock. Then the processor
    does not limit how often queries can be evaluated, and the budget is infinite. It is also infinite without a clock.

    :param seen: pairs of the clock and the time of the streams at the last ticks of the clock, oldest first.

    >>> budget = TickBudget(0.5, [(0.0, 5_000.0), (1_000.0, 6_000.0)])
    >>> budget.ms(period_ms=1_000.0)
    400.0
    >>> TickBudget(0.5, [(0.0, 5_000.0), (1_000.0, 99_000.0)]).ms(period_ms=94_000.0)
    inf
    """

    def __init__(self, share: float, seen: Iterable[tuple[float, float]] = ()) -> None:
        self._share = share
        self._seen = deque(((float(clock), float(now)) for clock, now in seen), maxlen=_TICKS)

    @property
    def seen(self) -> list[tuple[float, float]]:
        """The state."""
        return list(self._seen)

    def observe(self, clock_ms: float, now_ms: float) -> None:
        """Note a tick of the clock, and the time of the streams then."""
        self._seen.append((clock_ms, now_ms))

    def ms(self, period_ms: float) -> float:
        """The budget for one micro-batch; ``period_ms`` is the usual time between two of them."""
        if len(self._seen) < 2 or not period_ms > 0.0:
            return float("inf")
        (clock_from, from_ms), (clock_to, to_ms) = self._seen[0], self._seen[-1]
        live = clock_to > clock_from and to_ms - from_ms <= _LIVE_PACE * (clock_to - clock_from)
        return EVALUATION_RATIO * self._share * period_ms if live else float("inf")
