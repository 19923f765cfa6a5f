"""What a query text is printed as means to Spark what the text itself means."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from slackwater.language import parse, spark_sql

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
    "trim(BOTH 'x' FROM 'xax')",
]
AGGREGATES = [
    "max_by(id, id, 3)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY id)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY id DESC)",
    "percentile(id, 0.3, id)",
    "approx_percentile(id, 0.5, 100)",
    "string_agg(CAST(id AS STRING))",
    "listagg(DISTINCT CAST(id AS STRING), ',') WITHIN GROUP (ORDER BY CAST(id AS STRING))",
    "last(NULLIF(id, 9), TRUE)",
    "sort_array(array_agg(id))",
]


def test_spark_answers_alike(spark: SparkSession) -> None:
    text = f"SELECT {', '.join(f'{said} AS c{at}' for at, said in enumerate(SCALARS))}"
    printed = spark_sql(parse(text).select)
    assert printed != text
    assert spark.sql(printed).collect() == spark.sql(text).collect()


def test_spark_aggregates_alike(spark: SparkSession) -> None:
    text = f"SELECT {', '.join(f'{said} AS c{at}' for at, said in enumerate(AGGREGATES))} FROM range(10)"
    printed = spark_sql(parse(text).select)
    assert spark.sql(printed).collect() == spark.sql(text).collect()
