"""The control row as one line of text: what judges the rows of the next micro-batch.

The line has a constant length, because Spark reads the file again in every micro-batch but remembers its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from slackwater.spark.worker.sampling import sampling_start_us
from slackwater.units import MS_US

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
    def for_batch(
        cls,
        heartbeat_ms: int | None,
        clock_ms: int | None = None,
        sample_cells: bool = False,
        chosen_at_ms: int | None = None,
        decided_at_ms: int | None = None,
    ) -> ControlLine:
        """The line under which a micro-batch runs; without a heartbeat no row is late.

        The histogram's reference is the heartbeat, or ``clock_ms`` while there is none.

        >>> ControlLine.for_batch(None) == ControlLine()
        True
        """
        heartbeat_us = None if heartbeat_ms is None else heartbeat_ms * MS_US
        reference_ms = clock_ms if heartbeat_ms is None else heartbeat_ms
        return cls(
            UNKNOWN_US if heartbeat_us is None else heartbeat_us,
            UNKNOWN_US if reference_ms is None else reference_ms * MS_US,
            sampling_start_us(heartbeat_us) if sample_cells else NEVER_US,
            UNKNOWN_US if chosen_at_ms is None else chosen_at_ms * MS_US,
            UNKNOWN_US if decided_at_ms is None else decided_at_ms * MS_US,
        )

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
    def position(cls, number: int) -> int:
        """Where a number begins in the line, counted from 1 as SQL's ``substring`` does.

        >>> [ControlLine.position(number) for number in range(5)]
        [1, 22, 43, 64, 85]
        """
        return 1 + number * (WIDTH + 1)
