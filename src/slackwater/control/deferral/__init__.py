"""Deferral: how long a standing answer may stand. One concept a file."""

from slackwater.control.deferral.estimation import DEFAULT_K, StreamEstimator
from slackwater.control.deferral.methods import (
    DEFAULT_METHOD,
    DeferralMethod,
    deferral_method,
    deferral_method_names,
)

__all__ = [
    "DEFAULT_K",
    "DEFAULT_METHOD",
    "DeferralMethod",
    "StreamEstimator",
    "deferral_method",
    "deferral_method_names",
]
