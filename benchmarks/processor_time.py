"""Processor time of a process and its children. Unlike wall-clock time, it excludes the work of other processes."""

from __future__ import annotations

import os
from pathlib import Path


def processor_time_s(root: int) -> float:
    """The processor time of a process and its descendants so far, in seconds. Reads ``/proc``, so Linux only."""
    fields: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
    family, found = {root}, {root}
    while found:
        found = {pid for pid, values in fields.items() if int(values[1]) in found and pid not in family}
        family |= found
    # user and system time of the process, and of its children that have ended
    ticks = sum(int(value) for pid in family for value in fields[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")
