"""Functions that run code are refused in every hiding place."""

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse, spark_sql

HIDDEN = [
    "SELECT reflect('java.lang.System', 'exit', 1) FROM S",
    "SELECT ReFlEcT('a', 'b') AS harmless FROM S [RANGE 5 minutes]",
    "SELECT `java_method`('a', 'b') FROM S",
    "SELECT try_reflect('a', 'b') FROM S",
    "SELECT system.builtin.reflect('a', 'b') FROM S",
    "SELECT x FROM (SELECT reflect('a', 'b') AS x FROM S)",
    "WITH c AS (SELECT java_method('a', 'b') AS x) SELECT x FROM c",
    "SELECT 1 FROM S WHERE x IN (SELECT reflect('a', 'b'))",
    "SELECT MAX(v) FROM S GROUP BY k HAVING reflect('a', 'b') = 'x'",
    "SELECT MAX(reflect('a', v)) FILTER (WHERE try_reflect('a', 'b') = 1) FROM S",
    "SELECT 1 FROM S LATERAL VIEW explode(array(reflect('a', 'b'))) t",
    "SELECT 1 FROM S JOIN n ON reflect('a', 'b') = n.x",
    "SELECT 1 UNION ALL SELECT reflect('a', 'b')",
    "SELECT transform(a, x -> reflect('a', x)) FROM S",
    "SELECT /* comment */ reflect /* comment */ ('a', 'b')",
    "SELECT IDENTIFIER('ref' || 'lect')",
    "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM S",
    "SELECT IDENTIFIER('ref' || 'lect')('a', 'b')",
    "SELECT * FROM S LATERAL VIEW OUTER `reflect`('a', 'b') t AS x",
    "SELECT * FROM S, LATERAL reflect('a', 'b')",
    "SELECT * FROM reflect('a', 'b')",
    "SELECT `system`.`builtin`.`Java_Method`('a', 'b')",
    "SELECT * FROM (FROM S SELECT TRANSFORM(a) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' USING 'cat')",
    "BEGIN SELECT 1; END",
    "SELECT x OVER (ORDER BY reflect('a', 'b')) FROM S",
    "SELECT /*+ COALESCE(reflect('a', 'b')) */ x FROM S",
    "SELECT /*+ BROADCAST(a) reflect('a', 'b' */ x FROM S",
    "SELECT v:a[reflect('a', 'b')] FROM S",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="code-in-query|wrong-sql"):
        parse(text)


STATEMENTS = {
    "WITH w AS (SELECT COUNT(*) AS n FROM S [RANGE 5 minutes]) SELECT 'x' AS a INTO evil FROM range(1)": "INTO",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes] WHERE k IN (SELECT a INTO evil FROM t)": "INTO",
    "WITH a AS (INSERT INTO x SELECT 1) SELECT COUNT(*) FROM S [RANGE 5 minutes]": "INSERT",
    "WITH a AS (DELETE FROM x) SELECT COUNT(*) FROM S [RANGE 5 minutes]": "DELETE",
    "WITH a AS (CREATE TABLE x (a INT)) SELECT COUNT(*) FROM S [RANGE 5 minutes]": "CREATE",
    "WITH a AS (CACHE TABLE x) SELECT COUNT(*) FROM S [RANGE 5 minutes]": "CACHE",
    "EXECUTE IMMEDIATE 'DROP TABLE x'": "EXECUTE",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes]; DROP TABLE x": "DROP",
}


@pytest.mark.parametrize(("text", "word"), STATEMENTS.items())
@pytest.mark.parametrize("allow_code", [False, True])
def test_other_statements_are_refused(text: str, word: str, allow_code: bool) -> None:
    with pytest.raises(QueryTextError, match="not-a-query") as refused:
        parse(text, allow_code=allow_code)
    *_, line, carets = str(refused.value).splitlines()
    assert line[carets.find("^") :].startswith(word) and carets.count("^") == len(word)


@pytest.mark.parametrize("end", ["", "\\", "'", "''", "\\'", "`"])
def test_quotes_in_strings_and_names_are_escaped(end: str) -> None:
    """Strings, keys and names print so that their content cannot end them early and continue as SQL."""
    text = f"{end}], reflect('a"
    string, name = text.replace("\\", "\\\\").replace("'", "\\'"), text.replace("`", "``")
    query = parse(
        f"SELECT DATE '{string}', 'x' '{string}', v:['{string}'].`{name}`, TRIM(LEADING '{string}' FROM x) FROM S"
    )
    date, joined, path, trimmed = parse(spark_sql(query.select)).select.expressions
    assert date.expression.name == text and joined.name == "x" + text and trimmed.expression.name == text
    assert [part.name for part in path.expressions] == [text, text]


def test_aliases_and_strings_are_not_code() -> None:
    parse("SELECT MAX(v) AS reflect FROM S [RANGE 5 minutes] WHERE k = 'java_method'")


def test_the_caller_may_allow_code() -> None:
    parse("SELECT reflect('a', 'b')", allow_code=True)


VARIABLES = [
    "SELECT MAX(`re${x}flect`('java.lang.System', 'exit', 1)) AS m FROM S [RANGE 5 minutes SLIDE 1 minute]",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes] WHERE k = '${env:HOME}'",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes WATTR `${x}`]",
    "SELECT '\\u0024{env:HOME}', COUNT(*) FROM S [RANGE 5 minutes]",
]


@pytest.mark.parametrize("text", VARIABLES)
def test_variables_that_spark_substitutes_are_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="variable-in-query") as refused:
        parse(text)
    if "${" in text:
        assert str(refused.value).splitlines()[-1].find("^") == text.find("${") + 2
    parse(text, allow_code=True)
