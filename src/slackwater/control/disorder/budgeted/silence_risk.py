"""How large a bet on a silent source may be: what the silences that ended say of it."""

from __future__ import annotations

from slackwater.control.disorder.protocol import Floats

HALVINGS = 7
"""The largest bet is found to about a hundredth."""


class SilenceRisk:
    """To pass a silent source is to bet its possible backlog; the record of such bets says how large one may be.

    Nothing tells a source that has nothing to send from one that cannot send. So a bet is judged by those before it, of
    all sources together: of the rows feared when a silence ended, how many came. In that record the bet itself counts
    as lost (rule of succession), and a bet that was half as large says a quarter as much: half the rows, each with half
    the weight. With F = Σ f² over the fears f, and C = Σ f · c where c of them came, a bet of B rows is expected to
    lose B · (C + B²) / (F + B²). Many short silences hence say little of a long one, and where sources fall idle for
    long all the time, ever less is feared of it.

    Fails where a stream on which silences were idle begins to stall: the first stall is then lost.
    """

    def __init__(self) -> None:
        self.feared = 0.0
        self.came = 0.0

    def settle(self, feared: Floats, came: Floats) -> None:
        """Enter silences that have ended: the rows feared to come late, and those of them that did."""
        self.feared += float(feared @ feared)
        self.came += float(feared @ came)

    def expected_loss(self, bet: float) -> float:
        """The rows that a bet of so many is expected to lose: at most all, and the more the larger it is."""
        square = bet * bet
        return bet * (self.came + square) / (self.feared + square) if square > 0 else 0.0

    def affordable(self, balance: float) -> float:
        """The largest bet, in rows, that is expected to lose no more than the balance.

        It is the balance itself while nothing is known, or where all came that was feared.

        >>> import numpy as np
        >>> bets = SilenceRisk()
        >>> round(bets.affordable(10.0))
        10
        >>> bets.settle(feared=np.full(9, 100.0), came=np.zeros(9))
        >>> round(bets.affordable(10.0))
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
        """Two numbers."""
        return [self.feared, self.came]

    def resume(self, snapshot: list[float]) -> None:
        """Go on from a snapshot."""
        self.feared, self.came = snapshot
