"""Keeps garbage collection cheap in Spark's Python workers, which are reused from task to task."""

from __future__ import annotations

import gc
import sys

_frozen_modules = 0


def settle_worker() -> None:
    """Exclude imported modules from garbage collection. Call it at the start of a task.

    PySpark collects garbage after every task. With pandas and Arrow loaded that takes about 60 ms, most of the cost of
    a small task, and always finds the same modules. They are frozen once, and again only after further imports, so
    that what a task leaves behind is still collected.
    """
    global _frozen_modules
    if len(sys.modules) > _frozen_modules:
        _frozen_modules = len(sys.modules)
        gc.freeze()
