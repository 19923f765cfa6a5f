"""What a process and all that it started have taken of the processors: what others do meanwhile is not in it."""

from __future__ import annotations

import os
from pathlib import Path


def processor_time_s(root: int) -> float:
    """The processor time of a process and its children so far (Linux)."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
    family, found = {root}, {root}
    while found:
        found = {pid for pid, values in fields.items() if int(values[1]) in found and pid not in family}
        family |= found
    # its own time, and that of its children that have ended
    ticks = sum(int(value) for pid in family for value in fields[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")
