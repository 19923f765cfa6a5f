"""The ways to decide how long an answer may stand, by name."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.errors import UnknownName


@dataclass(frozen=True, slots=True)
class DeferralMethod:
    """What a method adds to drifting Brownian motion.

    ``correlated``: variances of streams that move together are not just added. ``doubtful_drift``: a drift that the
    buffer cannot tell from none is left out. ``keeps_hit_rate``: a loop keeps the share of deferrals that end
    within the bound at the belief. ``keeps_fidelity``: a loop keeps the share of time within the bound, seen in
    random audits, at the belief or above.
    """

    name: str
    line: str
    correlated: bool
    doubtful_drift: bool
    keeps_hit_rate: bool
    keeps_fidelity: bool


_METHODS = {
    method.name: method
    for method in (
        DeferralMethod("brownian", "the paper's model as printed, open loop", False, False, False, False),
        DeferralMethod(
            "steady", "the same, but for a drift that k rows cannot tell from none", False, True, False, False
        ),
        DeferralMethod("correlated", "steady, with the covariance of the streams", True, True, False, False),
        DeferralMethod("calibrated", "the model, with the hit rate held at the belief", True, True, True, True),
        DeferralMethod("economical", "the model, with only the share of time held", True, True, False, True),
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
