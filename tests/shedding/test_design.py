"""Pole placement gives the paper's parameters and the wanted poles."""

from __future__ import annotations

import cmath
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.shedding import design, poles_for
from slackwater.errors import InvalidOption


def test_gains_are_those_of_the_paper() -> None:
    gains = design((0.7, 0.7), a=-0.8)
    assert [gains.b0, gains.b1, gains.a] == pytest.approx([0.4, -0.31, -0.8])


@given(st.floats(0.0, 0.95), st.floats(-math.pi, math.pi), st.floats(-1.0, 0.5))
def test_closed_loop_has_the_wanted_poles(radius: float, angle: float, a: float) -> None:
    wanted = (cmath.rect(radius, angle), cmath.rect(radius, -angle))
    found = design(wanted, a).poles()
    # compare the polynomials, because double roots are ill-conditioned
    assert sum(found).real == pytest.approx(sum(wanted).real, abs=1e-9)
    assert (found[0] * found[1]).real == pytest.approx((wanted[0] * wanted[1]).real, abs=1e-9)


@given(st.floats(0.0, 0.95), st.floats(0.0, 0.95), st.floats(-1.0, 0.5))
def test_static_gain_is_one_for_every_a(first: float, second: float, a: float) -> None:
    gains = design((first, second), a)
    at_one = 1 + (gains.a - 1 + gains.b0) + (-gains.a + gains.b1)  # the denominator of Eq. (16)
    assert gains.b0 + gains.b1 == pytest.approx(at_one)


def test_poles_follow_from_convergence_and_damping() -> None:
    for pole in poles_for(3, 1):
        assert pole == pytest.approx(math.exp(-1 / 3))
    ringing = poles_for(3, 0.7)
    assert ringing[0] == pytest.approx(ringing[1].conjugate())
    assert abs(ringing[0]) == pytest.approx(math.exp(-1 / 3))
    natural = cmath.log(ringing[0])
    assert -natural.real / abs(natural) == pytest.approx(0.7)
    slow = poles_for(3, 1.5)
    assert max(abs(pole) for pole in slow) == pytest.approx(math.exp(-1 / 3))
    logs = sorted(-cmath.log(pole).real for pole in slow)
    assert (logs[0] + logs[1]) / (2 * math.sqrt(logs[0] * logs[1])) == pytest.approx(1.5)


@pytest.mark.parametrize("poles", [(1.0, 0.5), (0.5 + 0.1j, 0.5)])
def test_impossible_poles_are_refused(poles: tuple[complex, complex]) -> None:
    with pytest.raises(InvalidOption):
        design(poles)
