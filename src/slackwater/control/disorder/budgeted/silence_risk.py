"""How many rows may be risked on a silent source, learned from silences that have ended."""

from __future__ import annotations

from slackwater.control.disorder.protocol import Floats

HALVINGS = 7
"""Steps of the bisection; they find the answer to about 1 %."""


class SilenceRisk:
    """Learns how many of the rows at risk in a silence really arrive late.

    A source that has nothing to send cannot be distinguished from one that is cut off. To pass such a source with the
    heartbeat risks the rows that it may be holding back. The expected loss is estimated from earlier silences of all
    sources: f rows were at risk when a silence ended, and c of them arrived late. With F = Σ f² and C = Σ f · c, a risk
    of B rows is expected to lose B · (C + B²) / (F + B²). The B² counts the new risk itself as lost (rule of
    succession). The weights f make a silence with half the rows at risk count a quarter as much, so many short silences
    say little about a long one.

    Fails on a stream whose silences were always idle when it stalls for the first time: those rows are lost.
    """

    def __init__(self) -> None:
        self._risk_squares = 0.0  # F
        self._risk_arrived = 0.0  # C

    def settle(self, at_risk: Floats, arrived: Floats) -> None:
        """Record silences that have ended: the rows that were at risk, and how many of them arrived late."""
        self._risk_squares += float(at_risk @ at_risk)
        self._risk_arrived += float(at_risk @ arrived)

    def expected_loss(self, risk: float) -> float:
        """The expected number of late rows if ``risk`` rows are risked. It increases with ``risk``."""
        square = risk * risk
        return risk * (self._risk_arrived + square) / (self._risk_squares + square) if square > 0 else 0.0

    def affordable(self, balance: float) -> float:
        """The largest number of rows that may be risked with an expected loss of at most ``balance`` rows.

        It equals the balance before the first silence has ended, or if all rows at risk arrived late.

        >>> import numpy as np
        >>> record = SilenceRisk()
        >>> round(record.affordable(10.0))
        10
        >>> record.settle(at_risk=np.full(9, 100.0), arrived=np.zeros(9))
        >>> round(record.affordable(10.0))
        100
        """
        low, high = balance, 2.0 * balance
        if balance <= 0:
            return 0.0
        while self.expected_loss(high) <= balance:
            low, high = high, 2.0 * high
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.expected_loss(middle) <= balance else (low, middle)
        return low

    def snapshot(self) -> list[float]:
        """F and C, as JSON."""
        return [self._risk_squares, self._risk_arrived]

    def resume(self, snapshot: list[float]) -> None:
        """Restore the state from a snapshot."""
        self._risk_squares, self._risk_arrived = snapshot
