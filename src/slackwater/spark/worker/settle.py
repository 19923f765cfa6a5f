"""Spark's Python workers, which live on from task to task."""

from __future__ import annotations

import gc
import sys

_imported = 0


def settle_worker() -> None:
    """At the start of a task: spare the worker a look through all that it has imported when the task has ended.

    PySpark collects garbage after every task. With pandas and Arrow loaded that takes some 60 ms, most of what a task
    of few rows costs, and finds the same modules again each time. They are set aside, once more only after further
    ones were imported, since what a task leaves behind is to be collected as before.
    """
    global _imported
    if len(sys.modules) > _imported:
        _imported = len(sys.modules)
        gc.freeze()
