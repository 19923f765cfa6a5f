"""How standing queries are evaluated and deferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.control.deferral import interruptions, scheduler
from slackwater.control.deferral.choice import check_aggregate, check_deferral
from slackwater.control.deferral.estimation import DEFAULT_K
from slackwater.control.deferral.methods import DEFAULT_METHOD
from slackwater.errors import InvalidOption

Aggregate = Literal["linear", "max", "min"]


@dataclass(frozen=True, slots=True)
class EvaluatorOptions:
    """Checked options of an evaluator. Times are in the unit of the streams' own times.

    :param aggregate: ``linear`` (the weighted sum), or its ``max`` or ``min`` over ``window`` or since ``landmark``.
    :param method: the name of a ``DeferralMethod``.
    :param k: rows per stream that its drift and diffusion are estimated from.
    :param t_max: the longest time between two estimates of a stream; a quarter of their span by default.
    :param value_and_drift: an answer moves with its drift until the next one (Zhu 2004, Eq. 8).
    :param while_interrupted: the time between two answers while a stream is silent (T of Algorithm 1); five ticks by
        default.
    :param patience: how many usual gaps a stream may be silent before it counts as interrupted.
    :param max_deferral: the longest deferral; by default the time that the estimates look back on.
    :param capacity: the most evaluations per tick; None means as many as the tick's budget of processor time allows.
        The others stay due.
    :param order: which evaluations come first when there is no time for all; None means ``least-penalty``.
    :param sum_of_errors: ε_intr is the sum of the errors of silent streams, not the root of the sum of squares.
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
    order: str | None = None
    sum_of_errors: bool = False

    def __post_init__(self) -> None:
        check_deferral(self.method, self.k, self.t_max, self.while_interrupted, self.capacity)
        if self.order is not None:
            scheduler.order(self.order)
        check_aggregate(self.value_and_drift, extreme=self.aggregate != "linear")
        if self.aggregate == "linear":
            if self.window is not None or self.landmark is not None:
                raise InvalidOption("window-without-extreme", "a linear aggregate has no window", "use max or min")
        elif (self.window is None) == (self.landmark is None):
            raise InvalidOption(
                "window-or-landmark",
                f"{self.aggregate} has window={self.window} and landmark={self.landmark}",
                "give exactly one of them",
            )
        if self.window is not None and not self.window > 0:
            raise InvalidOption("invalid-window", f"window={self.window} is not positive", "use a positive duration")

    def check_order(self, *, limited: bool) -> None:
        """Raise ``InvalidOption`` if an order is given that can have no effect.

        :param limited: whether the processor time of evaluations is limited.
        """
        if self.order is not None and self.capacity is None and not limited:
            raise InvalidOption(
                "order-without-limit",
                f"order={self.order!r} has no effect where evaluations are not limited",
                "give a capacity too, or leave out the order",
            )
