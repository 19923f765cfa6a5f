"""Types that Spark would refuse are found before Spark sees the query; what Spark takes is not refused."""

from __future__ import annotations

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse
from slackwater.plan import Catalog
from slackwater.plan.name_checks import check_names

W = "[RANGE 10 seconds SLIDE 10 seconds WATTR ts]"
CATALOG = Catalog.from_sql(
    "CREATE TABLE bid (ts TIMESTAMP, auction BIGINT, price BIGINT, rate DOUBLE, fee DECIMAL(10, 2), channel STRING, "
    "open BOOLEAN, day DATE, tags ARRAY<STRING>, extra MAP<STRING, STRING>, "
    "item STRUCT<kind: STRING, size: INT, at STRUCT<x: INT>>); "
    "CREATE TABLE person (id BIGINT, name STRING, channel STRING)"
)


@pytest.mark.parametrize(
    ("text", "condition", "at", "words"),
    [
        (f"SELECT SUM(day) FROM bid {W}", "wrong-type", "day", "sum does not take day of type date"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE day > DATE '204-01-01'", "wrong-literal", "'204", "is no date"),
        (f"SELECT AVG(open) FROM bid {W}", "wrong-type", "open", "of type boolean"),
        (f"SELECT COUNT(EXPLODE(tags)) FROM bid {W}", "misplaced-generator", "EXPLODE", "explode makes rows"),
        (f"SELECT MAX(extra) FROM bid {W}", "wrong-type", "extra", "of type map"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE price", "wrong-type", "price", "WHERE needs a condition"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE price > 1 AND rate", "wrong-type", "price", "AND does not take"),
        (f"SELECT COUNT(*) FROM bid {W} HAVING MAX(price)", "wrong-type", "MAX", "HAVING needs a condition"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE NOT price", "wrong-type", "price", "NOT needs a condition"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE tags = 'a'", "wrong-type", "tags", "of type array and 'a'"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE open > 3", "wrong-type", "open", "> does not take"),
        (f"SELECT MAX(CASE WHEN price THEN 1 END) FROM bid {W}", "wrong-type", "price", "CASE WHEN needs a condition"),
        (f"SELECT MAX(CASE WHEN open THEN 1 ELSE tags END) FROM bid {W}", "wrong-type", "1 ELSE", "CASE does not take"),
        (f"SELECT COUNT(*) FILTER (WHERE price) FROM bid {W}", "wrong-type", "price", "FILTER"),
        (f"SELECT MAX(price + tags) FROM bid {W}", "wrong-type", "price", "+ does not take"),
        (f"SELECT MAX(LENGTH(channel, 2)) FROM bid {W}", "wrong-arguments", "LENGTH", "length takes 1 argument, not 2"),
        (f"SELECT SUM(MAX(price)) FROM bid {W}", "nested-aggregate", "MAX", "inside an aggregate"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE MAX(price) > 1", "misplaced-aggregate", "MAX", "aggregate in WHERE"),
        ("SELECT price, ROW_NUMBER() AS n FROM bid [DRATIO 1%]", "no-over", "ROW_NUMBER", "needs OVER"),
        (f"SELECT MAX(channel) FROM bid {W} JOIN person ON id = auction", "ambiguous-column", "channel", "person"),
        (f"SELECT COUNT(*) FROM bid {W} WHERE price IN (SELECT * FROM person)", "subquery-columns", "SELECT *", "3"),
        (
            f"SELECT window_end, n FROM (SELECT COUNT(*) AS n FROM bid {W}) GROUP BY 1",
            "not-grouped",
            "n FROM (",
            "n is",
        ),
        ("SELECT rate FROM bid [DRATIO 1%] HAVING price > 1", "not-grouped", "rate", "rate is neither"),
        (
            f"SELECT PERCENTILE_APPROX(price) FROM bid {W}",
            "wrong-arguments",
            "PERCENTILE",
            "takes 2 or 3 arguments, not 1",
        ),
        (f"SELECT SUM(RAND()) FROM bid {W}", "random-aggregate", "RAND", "gives other values each time"),
        (f"SELECT COUNT(*) AS n FROM bid {W} WHERE n > 1", "unknown-column", "n > 1", "there is no column 'n'"),
        (f"SELECT COUNT(*) FROM bid {W} JOIN person ON price", "wrong-type", "price", "ON needs a condition"),
        (f"SELECT COUNT(*) FROM bid {W} JOIN person USING (id)", "unknown-column", "id", "bid has no column 'id'"),
        ("SELECT * EXCEPT (prise) FROM bid [DRATIO 1%]", "unknown-column", "prise", "did you mean price?"),
        ("SELECT EXPLODE(tags), EXPLODE(tags) FROM bid [DRATIO 1%]", "misplaced-generator", "EXPLODE", "second"),
        ("SELECT price[0] FROM bid [DRATIO 1%]", "wrong-type", "price", "so it has no element 0"),
        ("SELECT tags[channel] FROM bid [DRATIO 1%]", "wrong-type", "channel", "is not the number of an element"),
        (
            "SELECT CAST(price AS DATE) FROM bid [DRATIO 1%]",
            "wrong-type",
            "price",
            "Spark cannot cast price of type bigint",
        ),
        ("SELECT tags::INT FROM bid [DRATIO 1%]", "wrong-type", "tags", "it casts to string or array"),
        ("SELECT EXTRACT(HOUR FROM price) FROM bid [DRATIO 1%]", "wrong-type", "price", "EXTRACT does not take"),
        ("SELECT ROUND(rate, price) FROM bid [DRATIO 1%]", "not-constant", "price", "one value for all rows"),
        ("SELECT item.color FROM bid [DRATIO 1%]", "unknown-column", "item", "item has no field 'color'"),
        ("SELECT item.at.y FROM bid [DRATIO 1%]", "unknown-column", "item", "item has no field"),
        (f"SELECT AVG(b.item.at) FROM bid {W} AS b", "wrong-type", "b.item", "of type struct"),
        ("SELECT -tags FROM bid [DRATIO 1%]", "wrong-type", "tags", "- does not take tags of type array"),
        ("SELECT COALESCE(tags, 1) FROM bid [DRATIO 1%]", "wrong-type", "tags", "coalesce does not take"),
        ("SELECT GREATEST(price) FROM bid [DRATIO 1%]", "wrong-arguments", "GREATEST", "greatest takes 2"),
        ("SELECT TRANSFORM(price, x -> x) FROM bid [DRATIO 1%]", "wrong-type", "price", "give array"),
        ("SELECT FILTER(price, x -> x) FROM bid [DRATIO 1%]", "wrong-type", "price", "filter does not take"),
        (
            "WITH c(a) AS (SELECT price, rate FROM bid [DRATIO 1%]) SELECT a FROM c",
            "different-columns",
            "a) AS",
            "c is given 1 names, and has 2 columns",
        ),
        ("SELECT price FROM bid [DRATIO 1%] UNION ALL SELECT 1, 2", "different-columns", "SELECT 1", "2"),
        ("SELECT price FROM bid [DRATIO 1%] UNION ALL SELECT tags FROM bid", "wrong-type", "SELECT tags", "array"),
    ],
)
def test_a_type_that_spark_refuses_is_found(text: str, condition: str, at: str, words: str) -> None:
    with pytest.raises(QueryTextError) as found:
        check_names(parse(text), CATALOG)
    assert found.value.condition == condition and words in str(found.value)
    if condition != "subquery-columns" and "UNION" not in text:
        assert f"column {text.rindex(at) + 1}\n" in str(found.value), str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT SUM(channel), AVG(fee), MAX(day), MIN(open), COUNT(tags) FROM bid {W} WHERE channel > 3",
        f"SELECT SUM(IF(open, 1, rate)), MAX(COALESCE(channel, 'x')), MAX(ts + INTERVAL 1 DAY) FROM bid {W}",
        f"SELECT COUNT(DISTINCT price, channel) FILTER (WHERE open), FIRST(channel) IGNORE NULLS FROM bid {W}",
        f"SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price), MODE() WITHIN GROUP (ORDER BY 1) FROM bid {W}",
        f"SELECT LISTAGG(channel, ',') FROM bid {W}",
        f"SELECT *, RANK() OVER (PARTITION BY window_end ORDER BY n) AS r FROM (SELECT COUNT(*) AS n FROM bid {W})",
        "SELECT TIMESTAMPDIFF(HOUR, ts, ts), COALESCE(price, rate), -rate, tags[0], extra['a'] FROM bid [DRATIO 1%]",
        "SELECT price::STRING, CAST(channel AS DATE), TRY_CAST(ts AS DOUBLE), ROUND(rate, 1 + 1) FROM bid [DRATIO 1%]",
        f"SELECT AVG(item.size), MAX(b.item.at.x), MIN(extra.a) FROM bid {W} AS b WHERE item.kind LIKE 'a%'",
        "SELECT price AS n, n + 1, * EXCEPT (price) FROM bid [DRATIO 1%] WHERE rate > 1",
        "SELECT FILTER(tags, t -> t > 'a'), ARRAY(price, 2), GREATEST(price, rate) FROM bid [DRATIO 1%]",
        "WITH c(a, b) AS (SELECT price, rate FROM bid [DRATIO 1%]) SELECT a, b FROM c",
        f"SELECT MAX(CASE channel WHEN 'a' THEN 1 ELSE 2.5 END), MAX(SIZE(FILTER(tags, t -> t > 'a'))) FROM bid {W}",
        f"SELECT COUNT(*) FROM bid {W} WHERE (price, rate) IN (SELECT id, id FROM person) OR day = '2024-01-01'",
        f"SELECT EXTRACT(HOUR FROM ts) AS h, COUNT(*) FROM bid {W} GROUP BY ALL",
        f"SELECT window_end, MAX(n) + 1 AS m FROM (SELECT COUNT(*) AS n FROM bid {W}) GROUP BY window_end HAVING m > 1",
        f"SELECT channel, COUNT(*) FROM bid {W} JOIN person USING (channel) GROUP BY channel",
        "SELECT price * fee, rate || 'x', day - INTERVAL 2 DAYS, extra['a'], -rate, ~price FROM bid [DRATIO 1%]",
        f"SELECT upper(C) AS u, MAX(n) FROM (SELECT channel AS c, COUNT(*) AS n FROM bid {W} GROUP BY channel) "
        "GROUP BY UPPER(c), window_end",
        "SELECT DATEDIFF(DAY, ts, ts), DATE_ADD(HOUR, 1, ts), CONCAT(tags, tags) AS t, EXTRACT(DAY FROM ts), "
        "TRIM(BOTH 'x' FROM channel), POSITION('a' IN channel) FROM bid [DRATIO 1%]",
        "SELECT EXPLODE(tags) AS tag, price FROM bid [DRATIO 1%]",
        "SELECT price, t.x FROM bid [DRATIO 1%] LATERAL VIEW EXPLODE(tags) t AS x",
        "SELECT price AS p, p + 1, DATE_ADD(day, 1), CONCAT_WS(',', channel, channel) FROM bid [DRATIO 1%]",
        "SELECT price, channel FROM bid [DRATIO 1%] UNION ALL SELECT rate, channel FROM bid",
    ],
)
def test_what_spark_takes_is_not_refused(text: str) -> None:
    check_names(parse(text), CATALOG)
