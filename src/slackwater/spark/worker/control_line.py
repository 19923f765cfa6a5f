"""The control row as one line of text: what judges the rows of the next micro-batch.

The line has a constant length, because Spark reads the file again in every micro-batch but remembers its length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from slackwater.control.policy import Room
from slackwater.spark.worker.sampling import sampling_start_us
from slackwater.units import MS_US

UNKNOWN_US = -9_000_000_000_000_000_000
"""A time that is not known yet."""
NEVER_US = (1 << 63) - 1
"""A time that no row reaches."""
HIGHEST_US = 1 << 58
"""A time after every timestamp that is still safe to calculate with."""
WIDTH = 20
"""Characters per number; numbers are separated by one space."""


@dataclass(frozen=True, slots=True)
class ControlLine:
    """Times in microseconds.

    ``heartbeat_us`` judges the rows. Their distance from ``reference_us`` chooses their histogram cell: the heartbeat,
    or the arrival clock while there is no heartbeat. Rows from ``sample_from_us`` on are counted by a sample.
    ``chosen_at_us`` is the arrival clock at which the heartbeat was chosen, ``decided_at_us`` that of the decision.

    ``behind_us`` and ``wait_us`` say how far below its event time and below its arrival a row raises the heartbeat of
    the next micro-batch, and ``ceiling_us`` up to where. The first is known if the rows of the query may ever raise it,
    the ceiling if those of this micro-batch do.
    """

    heartbeat_us: int = UNKNOWN_US
    reference_us: int = UNKNOWN_US
    sample_from_us: int = NEVER_US
    chosen_at_us: int = UNKNOWN_US
    decided_at_us: int = UNKNOWN_US
    behind_us: int = UNKNOWN_US
    wait_us: int = 0
    ceiling_us: int = UNKNOWN_US

    @property
    def follows_rows(self) -> bool:
        """Whether rows may raise the heartbeat of the query."""
        return self.behind_us > UNKNOWN_US

    def in_room(self, room: Room | None) -> ControlLine:
        """The line of a query whose rows raise its heartbeat; None if those of this micro-batch must not."""
        if room is None:
            return replace(self, behind_us=0)
        ceiling_us = HIGHEST_US if math.isinf(room.ceiling) else math.floor(room.ceiling * MS_US)
        behind_us, wait_us = math.ceil(room.behind * MS_US), math.ceil(room.wait * MS_US)
        return replace(self, behind_us=behind_us, wait_us=wait_us, ceiling_us=ceiling_us)

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

        >>> ControlLine.of([*ControlLine(heartbeat_us=5).numbers, 10]) == ControlLine(heartbeat_us=5)
        True
        """
        return cls(*numbers[: len(fields(cls))])

    @property
    def numbers(self) -> tuple[int, ...]:
        """The fields in order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def text(self) -> str:
        """The line for the file.

        >>> len(ControlLine().text())
        168
        """
        return " ".join(f"{number:+0{WIDTH}d}" for number in self.numbers) + "\n"

    @classmethod
    def parse(cls, text: str) -> ControlLine:
        """The inverse of ``text``.

        >>> ControlLine.parse(ControlLine(5, 6, 7, 8, 9).text()) == ControlLine(5, 6, 7, 8, 9)
        True
        """
        return cls(*map(int, text.split()))

    @classmethod
    def position(cls, number: int) -> int:
        """Where a number begins in the line, counted from 1 as SQL's ``substring`` does.

        >>> [ControlLine.position(number) for number in range(5)]
        [1, 22, 43, 64, 85]
        """
        return 1 + number * (WIDTH + 1)
