"""Where to shed: before a filter or after it, as measured costs say.

Let the filter cost f per row and pass the share p of the rows, let shedding cost s per row, and let α be the shed
ratio. If rows are shed first, a row costs s + (1 − α)·f, since the filter sees only the rows that are kept. If they are
shed after the filter, it costs f + p·s. Both places lose the share α of the rows that pass, so the cheaper one leaves
more time for them. The filter should go first while α·f < (1 − p)·s.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.units import percent


@dataclass(frozen=True, slots=True)
class FilterCosts:
    """What a filter and shedding cost per row, in nanoseconds, and the share of the rows that pass the filter.

    >>> costs = FilterCosts("kind = 'a'", filter_ns=20.0, shedding_ns=400.0, pass_ratio=0.1)
    >>> costs.first_up_to
    1.0
    >>> print(costs)
    kind = 'a': 20 ns a row, 10% pass; shedding: 400 ns a row
    filter first, shed after it
    >>> print(FilterCosts("upper(note) LIKE '%X%'", filter_ns=600.0, shedding_ns=400.0, pass_ratio=0.1))
    upper(note) LIKE '%X%': 600 ns a row, 10% pass; shedding: 400 ns a row
    filter first while less than 60% is shed, else shed first
    """

    where: str
    filter_ns: float
    shedding_ns: float
    pass_ratio: float

    @property
    def first_up_to(self) -> float:
        """The shed ratio up to which the filter should go first; 0 if shedding should, whatever is shed."""
        saved_ns = (1.0 - self.pass_ratio) * self.shedding_ns
        return 1.0 if saved_ns >= self.filter_ns else saved_ns / self.filter_ns

    def __str__(self) -> str:
        costs = (
            f"{self.filter_ns:.0f} ns a row, {percent(self.pass_ratio)} pass; shedding: {self.shedding_ns:.0f} ns a row"
        )
        if self.first_up_to == 1.0:
            advice = "filter first, shed after it"
        else:
            advice = f"filter first while less than {percent(self.first_up_to)} is shed, else shed first"
        return f"{self.where}: {costs}\n{advice}"
