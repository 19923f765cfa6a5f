"""Pole placement: the gains of the controller from the wanted behaviour of the closed loop."""

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
    """The parameters b0, b1 and a of Tu 2006, Eq. (7)."""

    b0: float
    b1: float
    a: float

    def poles(self) -> tuple[complex, complex]:
        """The roots of the characteristic equation of the closed loop."""
        linear, constant = self.a - 1 + self.b0, -self.a + self.b1  # Tu 2006, Eq. (14)
        root = cmath.sqrt(linear * linear - 4 * constant)
        return (-linear + root) / 2, (-linear - root) / 2


def design(poles: tuple[complex, complex] = PAPER_POLES, a: float = PAPER_A) -> Gains:
    """The gains that give the closed loop these poles; ``a`` can be chosen freely.

    ``a`` decides how a constant error in the estimated rates affects the delay: a = −1 integrates it away, a = −0.8
    (the paper's choice) leaves an offset. Eq. (16) does not determine ``a``: it follows from Eq. (15), and its static
    gain is 1 for every ``a``. Raises ``InvalidOption`` for poles that are not a conjugate pair inside the unit circle.

    >>> gains = design((0.7, 0.7))
    >>> round(gains.b0, 9), round(gains.b1, 9), gains.a
    (0.4, -0.31, -0.8)
    >>> gains = design((0.7, 0.7), a=-1)
    >>> round(gains.b0, 9), round(gains.b1, 9)
    (0.6, -0.51)
    """
    total, product = complex(poles[0]) + complex(poles[1]), complex(poles[0]) * complex(poles[1])
    if abs(total.imag) > 1e-12 or abs(product.imag) > 1e-12:
        raise InvalidOption(
            "poles-not-conjugate",
            f"poles={poles!r} are not a conjugate pair",
            "give two real poles or a conjugate pair",
        )
    if max(abs(complex(pole)) for pole in poles) >= 1:
        raise InvalidOption(
            "unstable-poles", f"poles={poles!r} make the loop unstable", "choose poles of absolute value below 1"
        )
    return Gains(b0=1 - a - total.real, b1=a + product.real, a=a)  # Tu 2006, Eq. (15)


def poles_for(convergence_periods: float = 3.0, damping: float = 1.0) -> tuple[complex, complex]:
    """The poles of a loop that corrects 63 % of an error within ``convergence_periods``, with the given damping.

    With a damping below 0.7 the response oscillates visibly; above 1 it is slow. The paper's choice (three periods,
    damping 1) gives 0.717, which the paper rounds to 0.7.

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
        angle = decay / damping * math.sqrt(1 - damping * damping)
        return cmath.exp(complex(-decay, angle)), cmath.exp(complex(-decay, -angle))
    # the slower pole sets the convergence time; the faster one follows from the damping
    spread = math.sqrt(damping * damping - 1)
    fast = decay * (damping + spread) / (damping - spread)
    return complex(math.exp(-decay)), complex(math.exp(-fast))
