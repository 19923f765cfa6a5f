"""A printed query means to Spark what the original text means."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.sql import SparkSession

from slackwater.language import parse, spark_sql
from slackwater.plan import make_plan
from slackwater.plan.aggregates import column_of

pytestmark = pytest.mark.spark

SCALARS = [
    "TIMESTAMP '2024-03-01 00:00:00' - INTERVAL 1 DAY 2 HOURS",
    "TIMESTAMP '2024-03-01 00:00:00' - INTERVAL 1 HOUR 2 MINUTES 3 SECONDS",
    "-INTERVAL '1' DAY '2' HOUR",
    "'it''s'",
    '"say ""x"""',
    "r'\\d\\n'",
    "'x\\%y\\q\\t\\u0041'",
    "'a\\_b' LIKE 'a\\_b'",
    "to_json(parse_json('{\"a\": 1}'))",
    "from_utc_timestamp('2024-01-01 00:00:00', 'Asia/Tokyo')",
    "date_sub(DATE '2024-01-01', 1)",
    "datediff(day, DATE '2024-01-01', DATE '2024-02-01')",
    "decode('a', 'a', 'b')",
    "nvl(NULL, 2L) + .5 - 1e1D + 2S",
    "struct(1 AS a, 'b' AS b).b",
    "map('a', 1)['a']",
    "transform(array(1, 2), x -> x + 1)",
    "substr('abcdef' FROM 2 FOR 3)",
    "position('c' IN 'abc')",
    "5 - (3 - 2) - 7 DIV 2 % 2",
    "NULL <=> NULL",
    "1 << 3",
    "1 | 2 << 1 + 1 & 6 ^ ~3",
    "trim(BOTH 'x' FROM 'xax')",
    "trim(LEADING 'x' FROM 'xax') || trim(TRAILING FROM ' a ') || trim(' b ')",
    "CAST(12345 AS VARCHAR(3)) || CAST('a' AS CHAR(3))",
    "CAST(array('abc') AS ARRAY<VARCHAR(2)>)",
    "-1::STRING",
    "DATE '2024-02-28'::STRING || 'x'",
    "DATE '2024-02-28' + INTERVAL 1 DAY + 1",
    "-128Y",
    "-9223372036854775808L",
    "1.50BD + 1e3BD",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "X '1F' || x'2e'",
    "'a' \"b\" r'\\c'",
    "r'a''b'",
    "INTERVAL '1 02:03' DAY TO MINUTE - INTERVAL 2 HOURS 3 SECONDS",
    "false <=> true >= false",
    "1 = 1 IS NOT TRUE",
    "false = true NOT IN (false, NULL)",
    'parse_json(\'{"a": {"b c": [7]}}\'):a.`b c`[0]::INT',
    "parse_json('[1, 2]'):[1]::STRING",
    "'abc' LIKE SOME ('x', 'a%') AND 'abc' NOT LIKE ALL ('x', 'a%')",
    "CAST(NULL AS BOOLEAN) IS UNKNOWN",
    "len('abc') + char_length('ab')",
    "overlay('abc' PLACING 'Z' FROM 2 FOR 1)",
    "mask('Ab1', lowerChar => 'q')",
    "extract(DAY FROM INTERVAL '3 04' DAY TO HOUR)",
    "timestampadd(HOUR, 2, TIMESTAMP '2024-01-01')",
    "(1, 'b') IN ((1, 'b'), (2, 'c'))",
    "aggregate(array(1, 2), 0, (a, x) -> a + x, a -> a * 10)",
]
SINCE_4_2 = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
"""Spark 4.1 knows neither QUALIFY nor ``max_by`` with three arguments."""
AGGREGATES = [
    *(["max_by(id, id, 3)"] if SINCE_4_2 else []),
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY id)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY id DESC)",
    "percentile(id, 0.3, id)",
    "approx_percentile(id, 0.5, 100)",
    "string_agg(CAST(id AS STRING))",
    "listagg(DISTINCT CAST(id AS STRING), ',') WITHIN GROUP (ORDER BY CAST(id AS STRING))",
    "last(NULLIF(id, 9), TRUE)",
    "sort_array(array_agg(id))",
    "count(ALL id)",
    "sum(id) FILTER (WHERE id NOT BETWEEN 2 AND 4 AND id IS NOT NULL)",
    "max(struct(id, 'x')).id",
]
QUERIES = [
    "SELECT id FROM range(3) UNION DISTINCT SELECT id FROM range(5)",
    "SELECT * FROM VALUES 1, 2 AS t(x)",
    "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT x, (WITH c AS (SELECT 2) SELECT * FROM c) FROM a",
    *(
        ["SELECT id FROM range(9) QUALIFY row_number() OVER (PARTITION BY id % 3 ORDER BY id DESC) = 1"]
        if SINCE_4_2
        else []
    ),
    "SELECT id, sum(id) OVER (ORDER BY id ROWS 1 PRECEDING) AS s FROM range(4) ORDER BY id DESC NULLS LAST",
    "SELECT id FROM (SELECT * FROM range(99)) TABLESAMPLE (20 PERCENT) REPEATABLE (5)",
    "SELECT /*+ BROADCAST(b) */ a.id FROM range(3) AS a LEFT ANTI JOIN range(2) AS b USING (id)",
    "SELECT a.id, x FROM range(2) AS a, LATERAL (SELECT a.id + 1 AS x)",
    "SELECT DATE '2024-01-01', 2L, 1 << 2, len('a'), 'a' 'b', CAST(1 AS VARCHAR(3)), 1 IS NOT NULL",
]
# Each is used in every place of a windowed query: aggregated, as a key, and in WHERE, FILTER and HAVING.
IN_A_WINDOW = [
    "CAST(id AS VARCHAR(3))",
    "TRIM(LEADING '1' FROM CAST(id AS STRING))",
    "'a' 'b'",
    "-id::STRING",
    "id NOT IN (1, 2) OR id <=> 2",
    "parse_json('{\"a\": [1, 2]}'):a[1]::INT + id",
    "TIMESTAMP '2024-01-01' + INTERVAL 1 DAY 2 HOURS",
    "CASE WHEN id BETWEEN 1 AND 3 THEN 'x''y' ELSE r'\\z' END",
    "filter(array(id, 2L), x -> x > 1)",
    "(SELECT max(k) FROM names)",
]


def test_printed_expressions_have_the_same_values(spark: SparkSession) -> None:
    text = f"SELECT {', '.join(f'{expression} AS c{at}' for at, expression in enumerate(SCALARS))}"
    printed = spark_sql(parse(text).select)
    assert printed != text
    assert answer(spark, printed) == answer(spark, text)


def test_printed_aggregates_have_the_same_values(spark: SparkSession) -> None:
    text = f"SELECT {', '.join(f'{expression} AS c{at}' for at, expression in enumerate(AGGREGATES))} FROM range(10)"
    assert answer(spark, spark_sql(parse(text).select)) == answer(spark, text)


@pytest.mark.parametrize("text", QUERIES)
def test_printed_queries_have_the_same_rows(spark: SparkSession, text: str) -> None:
    assert answer(spark, spark_sql(parse(text).select)) == answer(spark, text)


def test_panes_and_plain_aggregation_agree(spark: SparkSession) -> None:
    """The parts of a plan, computed over the rows of one window, equal the query without a window."""
    spark.range(6).selectExpr("id", "id % 2 AS k").createOrReplaceTempView("rows_of_a_window")
    spark.range(3).selectExpr("id AS k").createOrReplaceTempView("names")
    values = ["COUNT(DISTINCT r.id) AS kinds"]
    values += [
        f"ANY_VALUE({expression}) FILTER (WHERE id = 1 AND ({expression}) IS NOT NULL) AS c{at}"
        for at, expression in enumerate(IN_A_WINDOW)
    ]
    where = " AND ".join(f"({expression}) IS NOT NULL" for expression in IN_A_WINDOW)
    keys = ", ".join(expression for expression in IN_A_WINDOW if not expression.startswith("(SELECT"))
    having = " AND ".join(f"COUNT({expression}) > 0" for expression in IN_A_WINDOW)
    text = (
        f"SELECT /*+ BROADCAST(n) */ n.k AS key, {', '.join(values)} FROM rows_of_a_window<window> AS r "
        f"JOIN names AS n ON n.k = r.k WHERE {where} GROUP BY n.k, {keys} HAVING {having}"
    )
    plan = make_plan(parse(text.replace("<window>", " [RANGE 1 minute SLIDE 1 minute WATTR id]")))
    shape = plan.shape
    assert shape is not None and plan.in_panes
    groups = ", ".join(shape.keys)
    plain = ", ".join(f"{sql} AS {name}" for name, sql in shape.plain_outputs)
    exact = answer(spark, text.replace("<window>", ""))
    assert (
        answer(spark, f"{shape.selecting(plain, 'rows_of_a_window')} GROUP BY {groups} HAVING {shape.plain_having}")
        == exact
    )
    parts = [part for aggregate in plan.aggregates for part in aggregate.parts]
    lifted = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    lifted += [f"{part.lift} AS {part.name}" for part in parts]
    panes = f"{shape.selecting(', '.join(lifted), 'rows_of_a_window')} GROUP BY {groups}"
    carried = ", ".join(shape.key_names)
    combined = ", ".join(f"{part.combine} AS {part.name}" for part in parts)
    answers = ", ".join(f"{a.lower} AS {column_of(i)}" for i, a in enumerate(plan.aggregates))
    windows = f"SELECT {carried}, {combined} FROM ({panes}) GROUP BY {carried}"
    merged = ", ".join(f"{sql} AS {name}" for name, sql in shape.outputs)
    windows = f"SELECT *, {answers} FROM ({windows})"
    assert answer(spark, f"SELECT {merged} FROM ({windows}) WHERE {shape.having}") == exact
    assert len(exact[1]) > 2


def answer(spark: SparkSession, text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The names and types of the columns, and the sorted rows."""
    found = spark.sql(text)
    return found.dtypes, sorted(map(str, found.collect()))
