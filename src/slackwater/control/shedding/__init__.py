"""Load shedding: decides how many rows to admit so that the delay stays at its target."""

from slackwater.control.shedding.controller import Decision, SheddingController
from slackwater.control.shedding.design import Gains, design, poles_for
from slackwater.control.shedding.protocol import Observation, SheddingLaw, Status
from slackwater.control.shedding.registry import DEFAULT_LAW, law_names, make_law, register

__all__ = [
    "DEFAULT_LAW",
    "Decision",
    "Gains",
    "Observation",
    "SheddingController",
    "SheddingLaw",
    "Status",
    "design",
    "law_names",
    "make_law",
    "poles_for",
    "register",
]
