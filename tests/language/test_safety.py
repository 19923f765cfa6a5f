"""Functions that run code are refused, however they are hidden."""

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse

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
    "SELECT x OVER (ORDER BY reflect('a', 'b')) FROM S",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="code-in-query|wrong-sql"):
        parse(text)


def test_a_name_in_a_text_is_no_code() -> None:
    parse("SELECT MAX(v) AS reflect FROM S [RANGE 5 minutes] WHERE k = 'java_method'")


def test_the_caller_may_allow_it() -> None:
    parse("SELECT reflect('a', 'b')", allow_code=True)


VARIABLES = [
    "SELECT MAX(`re${x}flect`('java.lang.System', 'exit', 1)) AS m FROM S [RANGE 5 minutes SLIDE 1 minute]",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes] WHERE k = '${env:HOME}'",
    "SELECT COUNT(*) FROM S [RANGE 5 minutes WATTR `${x}`]",
    "SELECT '\\u0024{env:HOME}', COUNT(*) FROM S [RANGE 5 minutes]",
]


@pytest.mark.parametrize("text", VARIABLES)
def test_what_spark_would_replace_in_the_text_is_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="variable-in-query") as refused:
        parse(text)
    if "${" in text:
        assert str(refused.value).splitlines()[-1].find("^") == text.find("${") + 2
    parse(text, allow_code=True)
