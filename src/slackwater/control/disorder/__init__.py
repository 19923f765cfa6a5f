"""Disorder control: decides how long to wait for rows that have not arrived yet."""

from slackwater.control.disorder.cause import Cause
from slackwater.control.disorder.controller import Decision, DisorderController
from slackwater.control.disorder.protocol import UNKNOWN, Batch, DisorderMethod
from slackwater.control.disorder.registry import DEFAULT_METHOD, make_method, method_names, refuse_unused, register

__all__ = [
    "DEFAULT_METHOD",
    "UNKNOWN",
    "Batch",
    "Cause",
    "Decision",
    "DisorderController",
    "DisorderMethod",
    "make_method",
    "method_names",
    "refuse_unused",
    "register",
]
