"""Pole placement: the controller's parameters from the behaviour that is wanted of the closed loop."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

from slackwater.errors import InvalidOption

PAPER_POLES = (0.7, 0.7)
PAPER_A = -0.8
INTEGRATING_A = -1.0


@dataclass(frozen=True, slots=True)
class Gains:
    """b0, b1 and a of Tu 2006, Eq. (7)."""

    b0: float
    b1: float
    a: float

    def poles(self) -> tuple[complex, complex]:
        """The roots of the closed loop's characteristic equation."""
        linear, constant = self.a - 1 + self.b0, -self.a + self.b1  # Tu 2006, Eq. (14)
        root = cmath.sqrt(linear * linear - 4 * constant)
        return (-linear + root) / 2, (-linear - root) / 2


def design(poles: tuple[complex, complex] = PAPER_POLES, a: float = PAPER_A) -> Gains:
    """The gains that put the closed loop's poles there; ``a`` is free.

    Eq. (16) adds nothing to Eq. (15): its static gain is one for every ``a``. What ``a`` decides is the answer
    to a constant error in the estimated arrival or service rate: a = −1 integrates it away, a = −0.8 (the paper's)
    leaves an offset. Poles on or outside the unit circle, or not conjugate, are refused.

    >>> gains = design((0.7, 0.7))
    >>> round(gains.b0, 9), round(gains.b1, 9), gains.a
    (0.4, -0.31, -0.8)
    >>> gains = design((0.7, 0.7), a=-1)
    >>> round(gains.b0, 9), round(gains.b1, 9)
    (0.6, -0.51)
    """
    total, product = complex(poles[0]) + complex(poles[1]), complex(poles[0]) * complex(poles[1])
    if abs(total.imag) > 1e-12 or abs(product.imag) > 1e-12:
        raise InvalidOption("poles-not-conjugate", f"poles={poles!r} are no conjugate pair", "give both of the pair")
    if max(abs(complex(pole)) for pole in poles) >= 1:
        raise InvalidOption("unstable-poles", f"poles={poles!r} make the loop unstable", "keep them below 1 in size")
    return Gains(b0=1 - a - total.real, b1=a + product.real, a=a)  # Tu 2006, Eq. (15)


def poles_for(convergence_periods: float = 3.0, damping: float = 1.0) -> tuple[complex, complex]:
    """Poles of a loop that covers 63 % of an error in so many periods, with that damping.

    Below a damping of 0.7 the response rings visibly; above 1 it is slow. The paper's three periods at damping 1
    give 0.717, which it rounds to 0.7.

    >>> [round(abs(pole), 3) for pole in poles_for(3, 1)]
    [0.717, 0.717]
    """
    if convergence_periods <= 0 or damping <= 0:
        raise InvalidOption(
            "impossible-design",
            f"convergence_periods={convergence_periods!r}, damping={damping!r}",
            "give positive numbers",
        )
    decay = 1.0 / convergence_periods
    if damping <= 1:
        turn = decay / damping * math.sqrt(1 - damping * damping)
        return cmath.exp(complex(-decay, turn)), cmath.exp(complex(-decay, -turn))
    # the slower pole sets the pace; the other follows from the damping
    spread = math.sqrt(damping * damping - 1)
    fast = decay * (damping + spread) / (damping - spread)
    return complex(math.exp(-decay)), complex(math.exp(-fast))
