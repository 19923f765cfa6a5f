"""The deferral options as users write them: ``Deferral("calibrated", k=200)``."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater import units
from slackwater.control.deferral import scheduler
from slackwater.control.deferral.estimation import DEFAULT_K, check_estimation
from slackwater.control.deferral.methods import DEFAULT_METHOD, deferral_method
from slackwater.errors import InvalidOption
from slackwater.promises import Duration


@dataclass(frozen=True, slots=True)
class Deferral:
    """A deferral method and its options, checked when it is made. A bare name means the method with its defaults.

    :param method: ``calibrated`` holds the hit rate at the confidence. ``economical`` holds only the share of time at
        it, with fewer evaluations. ``brownian`` is the paper's model without feedback.
    :param k: rows per stream that its drift and diffusion are estimated from.
    :param t_max: the longest time between two estimates of a stream; by default a quarter of the time they look back
        on.
    :param while_interrupted: the time between two answers while a stream is silent; five ticks by default.
    :param capacity: the most evaluations per shard and micro-batch; by default as many as the measured processor time
        allows. The others stay due.
    :param order: which due queries come first when there is no time for all of them: ``least-penalty`` (the default)
        those whose error grows most per unit of work, ``edf`` those with the earliest deadline, ``fifo`` those answered
        longest ago.
    :param value_and_drift: readers move an answer on by its ``drift`` until the next one. Not for MAX and MIN.
    :param sum_of_errors: with silent streams, ``error_bound`` is the sum of their errors, as printed in the paper, and
        not the root of the sum of their squares.

    >>> Deferral("calibrated", t_max="1 minute").t_max_ms
    60000.0
    """

    method: str = DEFAULT_METHOD
    k: int = field(default=DEFAULT_K, kw_only=True)
    t_max: Duration | None = field(default=None, kw_only=True)
    while_interrupted: Duration | None = field(default=None, kw_only=True)
    capacity: int | None = field(default=None, kw_only=True)
    order: str | None = field(default=None, kw_only=True)
    value_and_drift: bool = field(default=False, kw_only=True)
    sum_of_errors: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_deferral(self.method, self.k, self.t_max_ms, self.while_interrupted_ms, self.capacity)
        if self.order is not None:
            scheduler.order(self.order)

    @classmethod
    def of(cls, chosen: str | Deferral) -> Deferral:
        """The deferral itself, or the one that a bare method name stands for."""
        return cls(chosen) if isinstance(chosen, str) else chosen

    @property
    def t_max_ms(self) -> float | None:
        """``t_max`` in milliseconds."""
        return None if self.t_max is None else units.duration_ms(self.t_max, option="t_max")

    @property
    def while_interrupted_ms(self) -> float | None:
        """``while_interrupted`` in milliseconds."""
        if self.while_interrupted is None:
            return None
        return units.duration_ms(self.while_interrupted, option="while_interrupted")


def check_aggregate(value_and_drift: bool, *, extreme: bool) -> None:
    """Raise ``InvalidOption`` if MAX or MIN is to move with its drift."""
    if value_and_drift and extreme:
        raise InvalidOption(
            "drift-of-extreme",
            "value_and_drift has no effect on MAX and MIN: an extreme does not move with the drift",
            "leave it out, or use a linear aggregate",
        )


def check_deferral(
    method: str, k: int, t_max: float | None, while_interrupted: float | None, capacity: int | None
) -> None:
    """Raise ``InvalidOption`` or ``UnknownName`` for an option that no evaluator can use."""
    deferral_method(method)
    check_estimation(k, t_max)
    if while_interrupted is not None and not while_interrupted > 0:
        raise InvalidOption(
            "invalid-while-interrupted",
            f"while_interrupted={while_interrupted} is not positive",
            "use a positive duration",
        )
    if capacity is not None and capacity < 1:
        raise InvalidOption("invalid-capacity", f"capacity={capacity} evaluates nothing", "use 1 or more")
