"""Spark receives the query as it was written, or the query is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.errors import QueryTextError
from slackwater.language import parse, print_query, spark_sql

WINDOW = "FROM S [RANGE 5 minutes]"
UNCHANGED = [
    "NOW() - INTERVAL '1' DAY '2' HOURS",
    "a + INTERVAL '1' DAY + 1",
    "INTERVAL '1 02:03' DAY TO MINUTE",
    "'it\\'s'",
    "'say \"x\"'",
    "'x\\\\%y'",
    "PARSE_JSON(x)",
    "MAX_BY(a, b, 3)",
    "MIN_BY(a, b)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v DESC)",
    "PERCENTILE(v, 0.5, n)",
    "PERCENTILE_APPROX(v, 0.5, 100)",
    "STRING_AGG(a)",
    "LISTAGG(DISTINCT a, ',') WITHIN GROUP (ORDER BY a)",
    "LAST(a, TRUE)",
    "COLLECT_LIST(a)",
    "STRUCT(a, b AS c)",
    "MAP('a', 1)['a']",
    "NVL(a, b)",
    "`MY FUNCTION`(a)",
    "DATE_SUB(a, 1)",
    "DATEDIFF(day, a, b)",
    "DATE_TRUNC(a, ts)",
    "FROM_UTC_TIMESTAMP(a, 'UTC')",
    "DECODE(a, 'b', 'c')",
    "CAST('2024-01-01' AS TIMESTAMP)",
    "CAST(a AS VARCHAR(10))",
    "CAST(a AS ARRAY<CHAR(3)>)",
    "CAST(a AS TIME(3))",
    "TRY_CAST(a AS INT)",
    "TIMESTAMP '2024-01-01'",
    "TIME '10:00:00'",
    "DATE '2024-01-01' + X '1F'",
    "2L + 1.5BD - 1S * 1e3D / -128Y",
    "TRIM(a)",
    "TRIM(LEADING 'x' FROM a)",
    "TRIM(BOTH FROM a)",
    "LEN(a) + CHAR_LENGTH(a)",
    "a IS NOT NULL",
    "a <=> b >= c",
    "a = b NOT IN (c)",
    "a > b IS NOT TRUE",
    "a << 1 | b >> 2 & ~c",
    "v:a.b[0].c",
    "PARSE_JSON(a):b['it\\'s'][*]",
    "0x1F",
    "a LIKE ALL ('x%', '%y')",
    "SUM(a) OVER (ORDER BY b ROWS 1 PRECEDING)",
    "TRANSFORM(a, x -> x + 1)",
    "SUM(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "a[0].b['c']",
    "(a - (b - c)) DIV d % e",
]
NORMALIZED = {
    "now() - INTERVAL 1 DAY 2 HOURS": "NOW() - INTERVAL '1' DAY '2' HOURS",
    "-INTERVAL 1 HOUR 2 MINUTES 3 SECONDS": "-INTERVAL '1' HOUR '2' MINUTES '3' SECONDS",
    "'a' \"b\" r'\\c'": "'ab\\\\c'",
    "-1::STRING": "CAST(-1 AS STRING)",
    "-a::STRING": "-CAST(a AS STRING)",
    "DATE '2024-01-01'::STRING": "CAST(DATE '2024-01-01' AS STRING)",
    "v:`a b`::INT": "CAST(v:`a b` AS INT)",
    "COUNT(ALL a)": "COUNT(a)",
    "a LIKE SOME ('x', 'y')": "a LIKE ANY ('x', 'y')",
    "a IS NOT UNKNOWN": "a IS NOT NULL",
    "'it''s'": "'it\\'s'",  # one string with a quote since Spark 4.0
    "r'\\d'": "'\\\\d'",
    "approx_percentile(v, 0.5)": "PERCENTILE_APPROX(v, 0.5)",
    "array_agg(a)": "COLLECT_LIST(a)",
    "substr(a FROM 2 FOR 3)": "SUBSTRING(a, 2, 3)",
    ".5 + 2l": "0.5 + 2L",
}
CHANGED_BY_SQLGLOT = {
    "CAST(a AS DATETIME)": "DATETIME",
    "a AT TIME ZONE 'UTC'": "AT",
}


@pytest.mark.parametrize("expression", UNCHANGED)
def test_an_expression_is_printed_as_written(expression: str) -> None:
    text = f"SELECT {expression} AS found {WINDOW}"
    assert print_query(parse(text)) == text


@pytest.mark.parametrize(("written", "printed"), NORMALIZED.items())
def test_a_synonym_is_printed_in_its_normal_form(written: str, printed: str) -> None:
    assert print_query(parse(f"SELECT {written} AS found {WINDOW}")) == f"SELECT {printed} AS found {WINDOW}"


@pytest.mark.parametrize(("expression", "word"), CHANGED_BY_SQLGLOT.items())
def test_an_expression_that_would_change_is_refused(expression: str, word: str) -> None:
    with pytest.raises(QueryTextError, match="unfaithful-sql") as refused:
        parse(f"SELECT COUNT(*),\n  {expression} AS found {WINDOW}")
    *_, line, carets = str(refused.value).splitlines()
    assert line[carets.find("^") :].startswith(word)


CLAUSES = [
    "SELECT /*+ BROADCAST(n), COALESCE(2) */ a FROM S JOIN n USING (k)",
    "SELECT a FROM S QUALIFY ROW_NUMBER() OVER (PARTITION BY b ORDER BY c DESC) = 1",
    "WITH x AS (WITH y AS (SELECT 1 AS a) SELECT a FROM y) SELECT (WITH z AS (SELECT 2 AS b) SELECT b FROM z) FROM x",
    "SELECT * FROM S TABLESAMPLE (10 PERCENT) REPEATABLE (5)",
    "SELECT a FROM S ORDER BY a DESC, b NULLS LAST",
]
NORMALIZED_CLAUSES = {
    "SELECT ALL a FROM S UNION DISTINCT SELECT b FROM T": "SELECT a FROM S UNION SELECT b FROM T",
    "SELECT * FROM VALUES 1, 2 AS t(x)": "SELECT * FROM VALUES (1), (2) AS t(x)",
    "SELECT a FROM S ORDER BY a NULLS FIRST, b DESC NULLS LAST": "SELECT a FROM S ORDER BY a, b DESC",
    "SELECT /* no hint */ a /*+ nor this */ FROM S -- nor this": "SELECT a FROM S",
    "SELECT /*+ MERGE(n -- why\n) */ a FROM S": "SELECT /*+ MERGE(n) */ a FROM S",
}


@pytest.mark.parametrize(("written", "printed"), [*zip(CLAUSES, CLAUSES, strict=True), *NORMALIZED_CLAUSES.items()])
def test_a_clause_is_printed_as_written_or_in_its_normal_form(written: str, printed: str) -> None:
    assert print_query(parse(written)) == printed


leaves = st.sampled_from(["a", "t.b", "`the c`", "1", "2.5", "'it''s'", "NULL", "m['k']", "INTERVAL 1 DAY 2 HOURS"])
names = st.sampled_from(
    ["max_by", "parse_json", "nvl", "date_sub", "string_agg", "percentile", "map", "struct", "log", "mine", "max", "if"]
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("{}({})".format, names, st.lists(inner, max_size=3).map(", ".join)),
        st.builds("{} {} {}".format, inner, st.sampled_from(["+", "-", "*", "AND", "||", "<=>", "DIV"]), inner),
        st.builds("({})".format, inner),
        st.builds("CASE WHEN {} THEN {} END".format, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_every_accepted_expression_parses_again_to_the_same_query(expression: str) -> None:
    try:
        query = parse(f"SELECT {expression} AS found {WINDOW}")
    except QueryTextError:
        return
    assert parse(print_query(query)) == query
    assert spark_sql(query.select).count("(") >= expression.count("(")
