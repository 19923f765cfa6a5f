"""What a text with WITHIN asks for."""

from __future__ import annotations

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Catalog
from slackwater.plan.standing import COUNTED, StandingShape, explain_standing, standing_shape

COLUMNS = ["symbol", "ts", "price", "floor"]


def shape(text: str, value: str | None = "price") -> StandingShape:
    return standing_shape(parse(text), "Prices", COLUMNS, value)


def test_weights_from_a_joined_table() -> None:
    found = shape(
        "SELECT portfolio, SUM(weight * price) FROM Prices JOIN Holdings USING (symbol) GROUP BY portfolio "
        "WITHIN 1% CONFIDENCE 90%"
    )
    assert (found.table, found.join, found.keys) == ("Holdings", ("symbol", "symbol"), (("portfolio", "portfolio"),))
    assert (found.weight, found.value, found.bound, found.confidence) == ("1.0D * (weight)", "price", "1.0%", 0.9)


def test_every_word_of_it_may_be_qualified() -> None:
    found = shape(
        "SELECT h.portfolio AS pf, SUM(-p.price * h.weight / 2) AS worth FROM Prices p JOIN Holdings h "
        "ON h.sym = p.symbol WHERE h.active AND p.price > 0 GROUP BY h.portfolio WITHIN 2 CONFIDENCE 95%"
    )
    assert (found.join, found.keys, found.result) == (("sym", "symbol"), (("pf", "portfolio"),), "worth")
    assert found.weight == "1.0D * (-1) * (weight) / (2)"
    assert (found.stream_filter, found.table_filter) == ("(price > 0)", "(active)")


def test_members_are_the_streams_that_pass() -> None:
    found = shape("SELECT AVG(price) FROM Prices WHERE floor = 3 WITHIN 2 CONFIDENCE 95%")
    assert (found.table, found.average, found.extreme, found.stream_filter) == (None, True, None, "(floor = 3)")


def test_streams_are_counted() -> None:
    found = shape("SELECT floor, COUNT(*) AS n FROM Prices GROUP BY floor WITHIN 0.5 CONFIDENCE 95%")
    assert (found.value, found.weight, found.counts, found.average, found.bare) == (
        COUNTED, "1.0D", "1.0D", False, False,
    )  # fmt: skip
    found = shape("SELECT MAX(COUNT(price)) FROM Prices [RANGE 1 hour] WITHIN 1 CONFIDENCE 95%")
    assert (found.counts, found.extreme) == ("CASE WHEN price IS NOT NULL THEN 1.0D END", "max")


def test_extremes_over_windows() -> None:
    found = shape("SELECT MAX(AVG(price)) FROM Prices [RANGE 30 minutes] WITHIN 2 CONFIDENCE 95%")
    assert (found.extreme, found.window_ms, found.average, found.bare) == ("max", 1_800_000.0, True, False)
    found = shape(
        "SELECT floor, MIN(SUM(price)) AS low FROM Prices [LANDMARK '2024-01-01 00:00:00'] GROUP BY floor "
        "WITHIN 2% CONFIDENCE 95%"
    )
    assert (found.extreme, found.landmark, found.keys) == ("min", "2024-01-01 00:00:00", (("floor", "floor"),))
    assert shape("SELECT MAX(price) FROM Prices [RANGE 1 hour] WITHIN 2 CONFIDENCE 95%").bare


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT STDDEV(price) FROM Prices", "no linear aggregate"),
        ("SELECT COUNT(DISTINCT symbol) FROM Prices", "counts no streams"),
        ("SELECT COUNT(*) FROM Prices [RANGE 1 hour]", "have no window"),
        ("SELECT MAX(AVG(price)) FROM Prices", "need a window"),
        ("SELECT AVG(price) FROM Prices [RANGE 1 hour]", "have no window"),
        ("SELECT AVG(price), SUM(price) FROM Prices", "one aggregate, not 2"),
        ("SELECT floor, AVG(price) FROM Prices", "neither grouped by nor aggregated"),
        ("SELECT AVG(price) FROM Prices GROUP BY floor", "names the answer"),
        ("SELECT SUM(price * price) FROM Prices", "is not price times a weight"),
        ("SELECT SUM(1 / price) FROM Prices", "is not price times a weight"),
        ("SELECT SUM(price * floor) FROM Prices", "is the stream's, and no weight"),
        ("SELECT SUM(price) FROM Prices ORDER BY 1", "no ORDER"),
        ("SELECT MAX(AVG(price)) FROM Prices [RANGE 1 hour DRATIO 1%]", "DRATIO does not go with WITHIN"),
        ("SELECT MAX(AVG(price)) FROM Prices [RANGE 10 tuples]", "is a time"),
        ("SELECT SUM(price) FROM Prices LEFT JOIN Holdings USING (symbol)", "plain JOIN"),
        ("SELECT SUM(price) FROM Prices JOIN Holdings ON price > weight", "not by one key"),
        ("SELECT SUM(price) FROM Prices JOIN H USING (symbol) WHERE price > weight", "mixes the stream"),
        ("SELECT floor, SUM(price) FROM Prices JOIN H USING (symbol) GROUP BY floor", "is the stream's"),
    ],
)
def test_what_is_no_standing_query(text: str, said: str) -> None:
    with pytest.raises(QueryTextError, match="not-standing") as found:
        shape(f"{text} WITHIN 2 CONFIDENCE 95%")
    assert said in str(found.value)


def test_it_brings_its_own_error() -> None:
    with pytest.raises(QueryTextError, match="leave WITH ERROR out"):
        shape("SELECT AVG(price) FROM Prices WITH ERROR WITHIN 2 CONFIDENCE 95%")


def test_it_is_explained_without_spark() -> None:
    catalog = Catalog.from_sql("CREATE TABLE Prices (symbol STRING, ts TIMESTAMP, price DOUBLE)")
    text = "SELECT pf, MAX(SUM(w * price)) FROM Prices [RANGE 1 hour] JOIN H USING (symbol) GROUP BY pf"
    query = parse(f"{text} WITHIN 1% CONFIDENCE 90%")
    said = explain_standing(query, catalog)
    assert "aggregate   max of the sum of price\nwindow      of the last " in said
    assert "weights     H, by symbol: 1.0D * (w)" in said
    with pytest.raises(QueryTextError, match="is not known"):
        explain_standing(query, Catalog())
