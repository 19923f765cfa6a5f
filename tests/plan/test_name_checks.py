"""Names that mean nothing are found before Spark sees the query; names that mean something are not refused."""

from __future__ import annotations

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Catalog
from slackwater.plan.name_checks import check_names

W = "[RANGE 10 seconds SLIDE 10 seconds WATTR ts]"
CATALOG = Catalog.from_sql(
    "CREATE TABLE bid (ts TIMESTAMP, auction BIGINT, price BIGINT, channel STRING, `Event Time` TIMESTAMP, "
    "payload STRUCT<kind: STRING>); CREATE TABLE person (id BIGINT, name STRING, ts TIMESTAMP)"
)


@pytest.mark.parametrize(
    ("text", "condition", "at", "words"),
    [
        (f"SELECT chanel, COUNT(*) FROM bid {W} GROUP BY 1", "unknown-column", "chanel", "did you mean channel?"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE prise > 1", "unknown-column", "prise", "did you mean price?"),
        (f"SELECT COUNT(b.prise) FROM bid AS b {W}", "unknown-column", "b.prise", "b has no column 'prise'"),
        (f"SELECT COUNT(x.price) FROM bid AS b {W}", "unknown-column", "x.price", "no table or column 'x'"),
        (f"SELECT COUNT(*) FROM bids {W}", "unknown-table", "bids", "did you mean bid?"),
        (f"SELECT COUNT(*) FROM bid {W} JOIN persons p ON p.id = auction", "unknown-table", "persons", "person"),
        (f"SELECT COUNT(*) FROM bid {W} JOIN person p ON p.ide = auction", "unknown-column", "p.ide", "mean id?"),
        (f"SELECT SUMM(price) FROM bid {W}", "unknown-function", "SUMM", "did you mean sum?"),
        (f"SELECT m FROM (SELECT MAX(price) AS n FROM bid {W})", "unknown-column", "m FROM", "window_end, n"),
        (f"WITH c AS (SELECT COUNT(*) AS n FROM bid {W}) SELECT c.m FROM c", "unknown-column", "c.m", "c has no"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE price IN (SELECT age FROM person)", "unknown-column", "age", "'age'"),
        ("SELECT price FROM bid [DRATIO 1%] UNION ALL SELECT prise FROM bid", "unknown-column", "prise", "price"),
        (f"SELECT COUNT(*) FROM bid {W} HAVING MAX(prise) > 1", "unknown-column", "prise", "price"),
    ],
)
def test_an_unknown_name_is_found(text: str, condition: str, at: str, words: str) -> None:
    with pytest.raises(QueryTextError) as found:
        check_names(parse(text), CATALOG)
    assert found.value.condition == condition and words in str(found.value)
    assert f"column {text.rindex(at) + 1}\n" in str(found.value), str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT PRICE AS p, window_end, p + 1 FROM bid {W} WHERE payload.kind = bid.payload.kind GROUP BY price",
        f"WITH c AS (SELECT COUNT(*) AS n FROM bid {W}) SELECT window_start, MAX(c.n) FROM c GROUP BY window_start",
        f"WITH c(a) AS (SELECT id FROM person) SELECT COUNT(c.a) FROM bid {W} JOIN c ON c.a = auction",
        f"SELECT FILTER(COLLECT_LIST(price), v -> v > 1) AS l, SIZE(l) FROM bid {W} HAVING l IS NOT NULL",
        f"SELECT COUNT(*) FROM bid {W} WHERE EXISTS (SELECT * FROM person WHERE id = auction)",
        "SELECT k, ts FROM bid [DRATIO 1%] LATERAL VIEW EXPLODE(ARRAY(price)) t AS k",
        "SELECT window.start, COUNT(*) FROM bid [DRATIO 1%] GROUP BY window(`Event Time`, '5 minutes')",
        "SELECT EXTRACT(year FROM ts), CURRENT_DATE, INTERVAL 1 DAY, DATE_TRUNC('DAY', ts) FROM bid [DRATIO 1%]",
        "SELECT a, b FROM VALUES (1, 2) AS t(a, b) JOIN bid [DRATIO 1%] ON price = a",
        "SELECT * FROM other.somewhere AS s JOIN bid [DRATIO 1%] ON s.x = price",
        "SELECT person.*, A.price FROM person JOIN bid [DRATIO 1%] AS A USING (ts)",
        f"SELECT n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY m) AS n "
        f"FROM (SELECT MAX(price) AS m FROM bid {W} GROUP BY auction)) WHERE n < 3",
    ],
)
def test_a_known_name_is_not_refused(text: str) -> None:
    check_names(parse(text), CATALOG)


def test_a_function_of_the_session_is_known() -> None:
    check_names(parse("SELECT mine(price) FROM bid [DRATIO 1%]"), CATALOG, lambda name: name == "mine")
