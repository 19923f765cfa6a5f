"""The ways to decide how long an answer may stand, by name."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.errors import UnknownName


@dataclass(frozen=True, slots=True)
class DeferralMethod:
    """What a method adds to drifting Brownian motion.

    ``correlated``: variances of streams that move together are not just added. ``doubtful_drift``: a drift that the
    buffer cannot tell from none is left out. ``closed_loop``: one loop keeps the share of deferrals that end within
    the bound at the confidence, and one the share of time within it, seen in random audits, at the confidence or above.
    ``audit_ratio``: the share of evaluations that look back at a random tick of their deferral. ``spends``: time
    outside the bound that the confidence permits and that was not used makes deferrals longer.
    """

    name: str
    line: str
    correlated: bool
    doubtful_drift: bool
    closed_loop: bool = False
    audit_ratio: float = 0.0
    spends: bool = False


_METHODS = {
    method.name: method
    for method in (
        DeferralMethod("brownian", "the paper's model as printed, open loop", False, False),
        DeferralMethod("steady", "the same, but for a drift that k rows cannot tell from none", False, True),
        DeferralMethod("correlated", "steady, with the covariance of the streams", True, True),
        DeferralMethod("calibrated", "the model, with the hit rate held at the confidence", True, True, True, 0.125),
        DeferralMethod(
            "economical", "calibrated, with only the share of time held at the confidence", True, True, True, 1.0, True
        ),
    )
}
DEFAULT_METHOD = "calibrated"


def deferral_method_names() -> list[str]:
    """The methods by name."""
    return list(_METHODS)


def deferral_method(name: str) -> DeferralMethod:
    """The method of that name."""
    if name not in _METHODS:
        raise UnknownName(
            "unknown-deferral-method", f"there is no method {name!r}", f"use one of: {', '.join(_METHODS)}"
        )
    return _METHODS[name]
