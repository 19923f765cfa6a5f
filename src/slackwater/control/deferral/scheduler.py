"""The order of evaluation under overload: first come, earliest deadline, or least penalty.

An order is computed for all pending evaluations at once. Earliest deadline first is optimal while the processor can
keep up. Under overload it keeps working on evaluations that are already late; the order of Zhu 2004, §5 does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.errors import UnknownName

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Waiting evaluations: release time, deadline, remaining cost, and the drift and diffusion of the aggregate."""

    released: Floats
    deadline: Floats
    cost: Floats
    drift: Floats
    diffusion: Floats


def penalty(lateness: Floats, drift: Floats, diffusion: Floats) -> Floats:
    """The expected extra error of an evaluation that ends ``lateness`` after its deadline.

    >>> one = np.ones(1)
    >>> float(penalty(4 * one, one, one)[0]), float(penalty(-one, one, one)[0])
    (6.0, 0.0)
    """
    late = np.maximum(lateness, 0.0)
    return np.abs(drift) * late + diffusion * np.sqrt(late)  # Zhu 2004, Eq. (18)


def overloaded(now: float, pending: Pending) -> bool:
    """Whether some evaluation would miss its deadline even under earliest deadline first."""
    order = np.argsort(pending.deadline, kind="stable")
    return bool(np.any(now + np.cumsum(pending.cost[order]) > pending.deadline[order]))


def first_come(now: float, pending: Pending, tick: float) -> Ints:
    """Order by release time."""
    return np.argsort(pending.released, kind="stable")


def earliest_deadline(now: float, pending: Pending, tick: float) -> Ints:
    """Order by deadline."""
    return np.argsort(pending.deadline, kind="stable")


def least_penalty(now: float, pending: Pending, tick: float) -> Ints:
    """Order by deadline while all can be in time; otherwise by the penalty of waiting, per unit of work."""
    if not overloaded(now, pending):
        return earliest_deadline(now, pending, tick)
    slack = pending.deadline - (now + pending.cost)
    # Zhu 2004, §5. differs: past the deadline the lateness (at least a tick) replaces the slack, and |μ| replaces μ.
    distance = np.where(slack > 0.0, slack, np.maximum(-slack, tick))
    with np.errstate(invalid="ignore"):
        urgency = (np.abs(pending.drift) + pending.diffusion / np.sqrt(distance)) / pending.cost
    # A query without an answer has an infinite diffusion and lateness: it comes first.
    return np.argsort(-np.nan_to_num(urgency, nan=np.inf), kind="stable")


Order = Callable[[float, Pending, float], Ints]

_ORDERS: dict[str, Order] = {"fifo": first_come, "edf": earliest_deadline, "least-penalty": least_penalty}
DEFAULT_ORDER = "least-penalty"


def order_names() -> list[str]:
    """The names of all orders."""
    return list(_ORDERS)


def order(name: str) -> Order:
    """The order with that name; ``UnknownName`` if there is none."""
    if name not in _ORDERS:
        raise UnknownName("unknown-order", f"there is no order {name!r}", f"use one of: {', '.join(_ORDERS)}")
    return _ORDERS[name]
