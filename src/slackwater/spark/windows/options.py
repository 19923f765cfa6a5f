"""The options that ``sql``, ``window`` and ``ordered`` share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from slackwater.control.choice import Law, Method
from slackwater.control.deferral import Deferral
from slackwater.errors import InvalidOption
from slackwater.language import Query
from slackwater.plan import Path, Plan
from slackwater.spark.runtime.settings import Setting, integer_setting
from slackwater.spark.runtime.sharding import MOST_SHARDS

_DEFAULT_SHARDS = 16


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of a query; None means that the user did not give the option.

    :param name: the name of the promise in metrics and reports.
    :param method: how the wait is found.
    :param law: how the shed ratio is found, for DELAY.
    :param deferral: how evaluations are deferred, for WITHIN.
    :param shards: the number of tasks that share the ordered path.
    :param location: the folder of the promise.
    """

    name: str | None = None
    method: str | Method | None = None
    law: str | Law | None = None
    deferral: str | Deferral | None = None
    shards: int | None = None
    location: str | None = None

    def __post_init__(self) -> None:
        if self.shards is not None:
            _check_shards("shards", self.shards)

    def shards_or_default(self, spark: SparkSession) -> int:
        """The number of shards that the user gave, else the session's, else 16."""
        if self.shards is not None:
            return self.shards
        shards = integer_setting(spark, Setting.SHARDS)
        if shards is None:
            return _DEFAULT_SHARDS
        _check_shards(Setting.SHARDS.value, shards)
        return shards

    def refuse_unused_by_within(self, query: Query) -> None:
        """Refuse the options that a standing query cannot honour."""
        windows = [window for _, window in query.windows]
        if not any(window.drop_ratio is not None for window in windows):
            self._refuse("method", "on a query with WITHIN and without DRATIO")
        if not any(window.delay_ms is not None for window in windows):
            self._refuse("law", "on a query with WITHIN and without DELAY")

    def refuse_unused_by(self, plan: Plan) -> None:
        """Refuse the options that a plan cannot honour."""
        self._refuse("deferral", "on a query without WITHIN")
        if plan.window.delay_ms is None:
            self._refuse("law", "without DELAY")
        other = self.method is not None and Method.of(self.method).name != plan.method
        if plan.window.heartbeat is not None and other:
            self._refuse("method", "with HEARTBEAT: the heartbeats of the stream itself count")
        if plan.path is Path.NATIVE:
            self._refuse("shards", "on windows with SLIDE, which Spark aggregates itself")
        elif plan.path is Path.ROWS:
            self._refuse("shards", "on a query without a window")
        elif not plan.sharded:
            self.refuse_several_shards("without GROUP BY, or on tuples without PER: the whole stream is one order")

    def refuse_several_shards(self, where: str) -> None:
        """Refuse ``shards`` above 1 where the whole stream is one shard."""
        if self.shards != 1:
            self._refuse("shards", where)

    def _refuse(self, option: str, where: str) -> None:
        value = getattr(self, option)
        if value is not None:
            raise InvalidOption("option-not-used", f"{option}={value!r} has no effect {where}", f"leave out {option}")


def _check_shards(option: str, shards: int) -> None:
    if not 1 <= shards <= MOST_SHARDS:
        raise InvalidOption("invalid-shards", f"{option}={shards!r}", f"use 1 to {MOST_SHARDS}")
