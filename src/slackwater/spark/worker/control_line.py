"""The control row as one line of text: what judges the rows of the next micro-batch.

The line has a constant length, because Spark reads the file again in every micro-batch but remembers its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

UNKNOWN_US = -9_000_000_000_000_000_000
"""A time that is not known yet."""
NEVER_US = (1 << 63) - 1
"""A time that no row reaches."""
WIDTH = 20
"""Characters per number; numbers are separated by one space."""


@dataclass(frozen=True, slots=True)
class ControlLine:
    """Times in microseconds.

    ``heartbeat_us`` judges the rows. Their distance from ``reference_us`` chooses their histogram cell: the heartbeat,
    or the arrival clock while there is no heartbeat. Rows from ``sample_from_us`` on are counted by a sample.
    ``chosen_at_us`` is the arrival clock at which the heartbeat was chosen, ``decided_at_us`` that of the decision.
    """

    heartbeat_us: int = UNKNOWN_US
    reference_us: int = UNKNOWN_US
    sample_from_us: int = NEVER_US
    chosen_at_us: int = UNKNOWN_US
    decided_at_us: int = UNKNOWN_US

    @classmethod
    def of(cls, numbers: Sequence[int]) -> ControlLine:
        """The inverse of ``numbers``; further numbers are ignored.

        >>> ControlLine.of([5, 6, 7, 8, 9, 10])
        ControlLine(heartbeat_us=5, reference_us=6, sample_from_us=7, chosen_at_us=8, decided_at_us=9)
        """
        return cls(*numbers[: len(fields(cls))])

    @property
    def numbers(self) -> tuple[int, ...]:
        """The fields in order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def text(self) -> str:
        """The line for the file.

        >>> len(ControlLine().text())
        105
        """
        return " ".join(f"{number:+0{WIDTH}d}" for number in self.numbers) + "\n"

    @classmethod
    def parse(cls, text: str) -> ControlLine:
        """The inverse of ``text``.

        >>> ControlLine.parse(ControlLine(5, 6, 7, 8, 9).text())
        ControlLine(heartbeat_us=5, reference_us=6, sample_from_us=7, chosen_at_us=8, decided_at_us=9)
        """
        return cls(*map(int, text.split()))

    @classmethod
    def position(cls, name: str) -> int:
        """Where a field begins in the line, counted from 1 as SQL's ``substring`` does.

        >>> [ControlLine.position(field.name) for field in fields(ControlLine)]
        [1, 22, 43, 64, 85]
        """
        return 1 + [field.name for field in fields(cls)].index(name) * (WIDTH + 1)
