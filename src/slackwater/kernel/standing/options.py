"""How standing answers are computed and deferred, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.control.deferral import interruptions, scheduler
from slackwater.control.deferral.estimation import DEFAULT_K, StreamEstimator
from slackwater.control.deferral.methods import DEFAULT_METHOD, deferral_method
from slackwater.errors import InvalidOption

Aggregate = Literal["linear", "max", "min"]


@dataclass(frozen=True, slots=True)
class EvaluatorOptions:
    """How answers are computed and deferred; times in the unit of the streams' own times.

    ``value_and_drift``: the answer moves with its drift between evaluations (Zhu 2004, Eq. 8).
    ``while_interrupted``: T of Algorithm 1, five ticks unless given. ``max_deferral``: no answer stands longer;
    unless given, the time that the estimates look back on. ``capacity``: the most evaluations a tick, where overload
    must be borne in the order of §5. ``sum_of_errors``: ε_intr adds the errors of silent streams, not their squares.
    """

    aggregate: Aggregate = "linear"
    window: float | None = None
    landmark: float | None = None
    method: str = DEFAULT_METHOD
    k: int = DEFAULT_K
    t_max: float | None = None
    value_and_drift: bool = False
    while_interrupted: float | None = None
    patience: float = interruptions.PATIENCE
    max_deferral: float | None = None
    capacity: int | None = None
    order: str = scheduler.DEFAULT_ORDER
    sum_of_errors: bool = False

    def __post_init__(self) -> None:
        deferral_method(self.method)
        scheduler.order(self.order)
        StreamEstimator(0, self.k, self.t_max)  # refuses what it cannot work with
        if self.aggregate == "linear":
            if self.window is not None or self.landmark is not None:
                raise InvalidOption("window-without-extreme", "a linear aggregate has no window", "use max or min")
        elif (self.window is None) == (self.landmark is None):
            raise InvalidOption(
                "window-or-landmark",
                f"{self.aggregate} needs one of window={self.window} and landmark={self.landmark}",
                "give exactly one",
            )
        if self.window is not None and not self.window > 0:
            raise InvalidOption("invalid-window", f"window={self.window} is not a time", "use a positive one")
        if self.capacity is not None and self.capacity < 1:
            raise InvalidOption("invalid-capacity", f"capacity={self.capacity} evaluates nothing", "use 1 or more")
