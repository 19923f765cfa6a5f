"""Queries over the results of windows, and over several windows: the streaming result equals the batch result."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.helpers.controllers import registered
from tests.nexmark.rows import AUCTIONS, BIDS
from tests.nexmark.suite import Suite

pytestmark = pytest.mark.spark
TUMBLE = "[RANGE 10 seconds SLIDE 10 seconds DRATIO 1%]"


@pytest.fixture(scope="module")
def suite(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with registered():
        yield Suite(spark, tmp_path_factory.mktemp("results"))


def test_windows_of_different_lengths_are_left_joined(suite: Suite) -> None:
    outcome = suite.compare(
        "lengths",
        "SELECT A.id, COUNT(B.price) AS bids FROM auction [RANGE 20 seconds SLIDE 10 seconds DRATIO 5%] AS A "
        f"LEFT JOIN bid {TUMBLE} AS B ON A.id = B.auction GROUP BY A.id",
        "SELECT A.w.start AS window_start, A.w.end AS window_end, A.id, COUNT(B.price) AS bids "
        "FROM (SELECT *, window(dateTime, '20 seconds', '10 seconds') AS w FROM auction) AS A "
        "LEFT JOIN (SELECT *, window(dateTime, '10 seconds') AS w FROM bid) AS B "
        "ON A.id = B.auction AND A.w.end = B.w.end GROUP BY A.w, A.id",
    )
    assert outcome.streamed == outcome.batch and len(outcome.streamed) == 2 * AUCTIONS
    # each stream has a promise of its own; the closing row is counted too
    assert outcome.inputs == {"lengths-1-A": AUCTIONS + 1, "lengths-2-B": BIDS + 1}


def test_results_are_ranked_within_their_window(suite: Suite) -> None:
    outcome = suite.compare(
        "ranks",
        "SELECT * FROM (SELECT *, RANK() OVER (PARTITION BY window_start ORDER BY n DESC, least NULLS LAST) AS r "
        "FROM (SELECT auction, COUNT(*) AS n, MIN(NULLIF(extra, '-')) AS least "
        f"FROM bid {TUMBLE} GROUP BY auction)) WHERE r <= 3",
        "SELECT * FROM (SELECT *, RANK() OVER (PARTITION BY window_start ORDER BY n DESC, least NULLS LAST) AS r "
        "FROM (SELECT window.start AS window_start, window.end AS window_end, auction, COUNT(*) AS n, "
        "MIN(NULLIF(extra, '-')) AS least FROM bid GROUP BY window(dateTime, '10 seconds'), auction)) WHERE r <= 3",
    )
    assert outcome.streamed == outcome.batch
    assert len({row[-1] for row in outcome.streamed}) == 3


@pytest.mark.full
def test_rows_meet_while_their_windows_hold_them(suite: Suite) -> None:
    outcome = suite.compare(
        "meeting",
        "SELECT A.id, B.price FROM auction [RANGE 6 seconds DRATIO 5%] AS A JOIN bid [RANGE 2 seconds DRATIO 1%] AS B "
        "ON A.category = B.price % 5 + 10",
        "SELECT A.id, B.price FROM auction AS A JOIN bid AS B ON A.category = B.price % 5 + 10 "
        "AND B.dateTime < A.dateTime + INTERVAL 6 SECONDS AND A.dateTime < B.dateTime + INTERVAL 2 SECONDS",
    )
    assert outcome.streamed == outcome.batch and outcome.streamed


@pytest.mark.full
def test_the_groups_of_a_window_need_no_aggregate(suite: Suite) -> None:
    outcome = suite.compare(
        "distinct",
        f"SELECT DISTINCT bidder FROM bid {TUMBLE} WHERE price > 1000",
        "SELECT DISTINCT window.start AS window_start, window.end AS window_end, bidder "
        "FROM (SELECT *, window(dateTime, '10 seconds') AS window FROM bid) WHERE price > 1000",
    )
    assert outcome.streamed == outcome.batch and outcome.streamed


@pytest.mark.full
def test_streams_are_united_each_with_its_promise(suite: Suite) -> None:
    outcome = suite.compare(
        "united",
        "SELECT id, dateTime FROM person [DRATIO 1%] UNION ALL SELECT id, dateTime FROM auction [DRATIO 5%]",
        "SELECT id, dateTime FROM person UNION ALL SELECT id, dateTime FROM auction",
    )
    assert outcome.streamed == outcome.batch and len(outcome.inputs) == 2


@pytest.mark.full
def test_sessions_are_filtered_and_read_by_an_outer_query(suite: Suite) -> None:
    outcome = suite.compare(
        "sessions",
        "SELECT window_start, bidder * 2 AS twice, n FROM (SELECT bidder, COUNT(*) AS n, COUNT(DISTINCT auction) AS a "
        "FROM bid [SESSION 3 seconds DRATIO 1%] WHERE price > 500 GROUP BY bidder HAVING COUNT(*) > 1)",
        "SELECT session_window.start AS window_start, bidder * 2 AS twice, COUNT(*) AS n FROM bid WHERE price > 500 "
        "GROUP BY session_window(dateTime, '3 seconds'), bidder HAVING COUNT(*) > 1",
    )
    assert outcome.streamed == outcome.batch and outcome.streamed
