"""The deferral methods by name, from the plainest to the one with the fewest evaluations.

- ``brownian``: the paper's model as printed, open loop;
- ``steady``: the same, without a drift that k rows cannot tell from zero;
- ``correlated``: ``steady`` with the covariance of the streams;
- ``calibrated``: ``correlated`` with the hit rate kept at the confidence;
- ``economical``: ``calibrated`` with only the share of time kept at the confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.errors import UnknownName


@dataclass(frozen=True, slots=True)
class DeferralMethod:
    """What a method adds to drifting Brownian motion (Zhu 2004).

    :param correlated: use the covariance of the streams instead of adding their variances.
    :param ignores_doubtful_drift: ignore a drift that ``k`` rows cannot tell from zero.
    :param closed_loop: calibrate every query by the outcomes of its deferrals (see ``calibration``).
    :param audit_ratio: the share of evaluations that check the old answer at a random tick of its deferral.
    :param spends: lengthen deferrals by the unused time that the confidence allows outside the bound (see
        ``spending``).
    """

    name: str
    correlated: bool = False
    ignores_doubtful_drift: bool = False
    closed_loop: bool = False
    audit_ratio: float = 0.0
    spends: bool = False


_METHODS = {
    method.name: method
    for method in (
        DeferralMethod("brownian"),
        DeferralMethod("steady", ignores_doubtful_drift=True),
        DeferralMethod("correlated", ignores_doubtful_drift=True, correlated=True),
        DeferralMethod("calibrated", ignores_doubtful_drift=True, correlated=True, closed_loop=True, audit_ratio=0.125),
        DeferralMethod(
            "economical", ignores_doubtful_drift=True, correlated=True, closed_loop=True, audit_ratio=1.0, spends=True
        ),
    )
}
DEFAULT_METHOD = "calibrated"


def deferral_method_names() -> list[str]:
    """All names, from the plainest method to the most elaborate."""
    return list(_METHODS)


def deferral_method(name: str) -> DeferralMethod:
    """The method with that name; ``UnknownName`` if there is none."""
    if name not in _METHODS:
        raise UnknownName(
            "unknown-deferral-method", f"there is no deferral method {name!r}", f"use one of: {', '.join(_METHODS)}"
        )
    return _METHODS[name]
