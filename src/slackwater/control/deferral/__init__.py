"""Deferral: how long the answer of a standing query may stand before the query is evaluated again."""

from slackwater.control.deferral.choice import Deferral
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
    "Deferral",
    "DeferralMethod",
    "StreamEstimator",
    "deferral_method",
    "deferral_method_names",
]
