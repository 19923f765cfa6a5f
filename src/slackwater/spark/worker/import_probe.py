"""A source without rows, which a Python worker can load only if it can import Slackwater."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class ImportProbe(DataSource):
    """``format("slackwater_import_probe")``."""

    @classmethod
    def name(cls) -> str:
        return "slackwater_import_probe"

    def schema(self) -> str:
        return "nothing int"
