"""The deferral options in the text of a standing query, ``USING (…)``, checked; errors point at the option."""

from __future__ import annotations

from typing import Any

from slackwater.control.deferral import Deferral
from slackwater.control.deferral.choice import check_aggregate
from slackwater.errors import SlackwaterError
from slackwater.language import Query, UsingOption
from slackwater.language.using_clause import DURATIONS
from slackwater.plan.text_positions import position_error
from slackwater.units import SECOND_MS


def deferral_of(query: Query, *, extreme: bool) -> Deferral | None:
    """The deferral that the text of a query with WITHIN asks for; None without USING.

    :param extreme: whether the aggregate is MAX or MIN.
    """
    assert query.precision is not None
    chosen: dict[str, Any] = {}
    deferral = None
    for option in query.precision.using:  # one by one, so that the error points at the option that is wrong
        chosen[option.name] = _value(option)
        try:
            deferral = Deferral(**chosen)
            check_aggregate(deferral.value_and_drift, extreme=extreme)
        except SlackwaterError as error:
            raise position_error(query, option.position, error.condition, error.problem, error.remedy) from error
    return deferral


def _value(option: UsingOption) -> Any:
    """The option's value as ``Deferral`` takes it: a time in seconds."""
    return option.value / SECOND_MS if option.name in DURATIONS else option.value  # type: ignore[operator]
