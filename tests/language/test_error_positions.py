"""Errors point at the wrong character, and Spark SQL that resembles our clauses stays Spark SQL."""

import pytest

from slackwater.errors import QueryTextError
from slackwater.language import parse, parse_script, print_query
from slackwater.plan import make_plan

HUGE = {
    "RANGE 1e999": "1e999",
    "RANGE 1e999 tuples": "1e999",
    "RANGE 1e400 seconds": "1e400",
    "RANGE 1e18 seconds": "1e18",
    "RANGE 5 SLIDE 1e400": "1e400",
    "RANGE 5 minutes SLACK 1e400": "1e400",
    "RANGE 5 minutes DELAY 1e400 seconds": "1e400",
    "LANDMARK 1e999": "1e999",
    "LANDMARK -1e999": "1e999",
}
UNCLOSED = {
    "SELECT MAX(v),\n 'abc FROM S [RANGE 5 minutes];\nSELECT 1": ("'", 2, 2),
    "SELECT 'it''s', `b FROM S": ("`", 1, 17),
    "SELECT 1 -- 'twas\n, /* x */ /* y": ("/*", 2, 11),
}
DEEP = {
    "parentheses": "(" * 200 + "MAX(v)" + ")" * 200,
    "calls": "abs(" * 200 + "MAX(v)" + ")" * 200,
    "cases": "CASE WHEN a THEN " * 200 + "MAX(v)" + " END" * 200,
    "sums": "1 + " * 3000 + "MAX(v)",
}


def pointed_at(refused: pytest.ExceptionInfo[QueryTextError]) -> str:
    """The text above the carets."""
    *_, line, carets = str(refused.value).splitlines()
    return line[carets.find("^") : carets.rfind("^") + 1]


@pytest.mark.parametrize(("clause", "number"), HUGE.items())
def test_a_number_that_is_too_large_is_refused(clause: str, number: str) -> None:
    with pytest.raises(QueryTextError, match="too-large") as refused:
        parse(f"SELECT MAX(v) FROM S [{clause}]")
    assert pointed_at(refused) == number


def test_bounds_and_ratios_beyond_floating_point_are_refused() -> None:
    with pytest.raises(QueryTextError, match="invalid-bound"):
        parse("SELECT SUM(v) FROM S WITHIN 1e999 CONFIDENCE 95%")
    with pytest.raises(QueryTextError, match="invalid-ratio"):
        parse("SELECT MAX(v) FROM S [RANGE 5 minutes DRATIO 1e-400%]")


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_refused(expression: str) -> None:
    with pytest.raises(QueryTextError, match="too-deep"):
        parse(f"SELECT {expression} FROM S [RANGE 5 minutes]")


@pytest.mark.parametrize("text", ["", "  \n", ";;", "-- nothing here", "/* nor here */ ;"])
def test_a_text_without_a_query_is_refused(text: str) -> None:
    with pytest.raises(QueryTextError, match="empty-query"):
        parse_script(text)


def test_a_byte_order_mark_is_ignored() -> None:
    parse("\ufeffSELECT MAX(v) FROM S [RANGE 5 minutes]")


@pytest.mark.parametrize(("text", "found"), UNCLOSED.items())
def test_the_error_points_at_an_open_quote_or_comment(text: str, found: tuple[str, int, int]) -> None:
    mark, line, column = found
    with pytest.raises(QueryTextError, match="unreadable-text") as refused:
        parse_script(text)
    assert pointed_at(refused) == mark and f"line {line}, column {column}\n" in str(refused.value)


def test_the_error_points_into_a_later_query_of_a_script() -> None:
    first, second = parse_script("SELECT MAX(v) FROM S [RANGE 5 minutes];\n\n  SELECT MAX(v) FROM S")
    make_plan(first)
    with pytest.raises(QueryTextError, match=r"no-window(.|\n)*line 3, column 3"):
        make_plan(second)
    with pytest.raises(QueryTextError, match=r"not-one-query(.|\n)*line 2, column 1"):
        parse("SELECT MAX(v) FROM S [RANGE 5 minutes];\nSELECT 1")


@pytest.mark.parametrize(
    "body",
    [
        "SELECT MAX(value) AS within FROM S [RANGE 5 minutes]",
        "SELECT MAX(value) AS `within` FROM S [RANGE 5 minutes]",
        "SELECT within, confidence FROM S [RANGE 5 minutes] WHERE within > 5",
        "SELECT `within` FROM S [RANGE 5 minutes] GROUP BY `within`",
        "SELECT s.within FROM S [RANGE 5 minutes] AS s WHERE note = 'WITHIN 5 CONFIDENCE 95%'",
        "SELECT MAX(value) FROM within [RANGE 5 minutes]",
        "WITH error AS (SELECT 1) SELECT MAX(v) FROM S [RANGE 5 minutes] CROSS JOIN error",
    ],
)
@pytest.mark.parametrize("trailing", ["", " WITHIN 0.5 CONFIDENCE 95%", " WITH ERROR"])
def test_a_name_is_not_a_trailing_clause(body: str, trailing: str) -> None:
    query = parse(body + trailing)
    assert (query.precision is not None, query.with_error) == ("WITHIN" in trailing, "ERROR" in trailing)
    assert print_query(query) == body + trailing


@pytest.mark.parametrize(
    "trailing", ["WITHIN 0.5", "WITHIN 0.5 CONFIDENCE 95", "WITHIN x CONFIDENCE 95%", "WITHIN 1 2"]
)
def test_a_malformed_trailing_clause_is_refused(trailing: str) -> None:
    with pytest.raises(QueryTextError, match="wrong-precision") as refused:
        parse(f"SELECT MAX(v) AS within FROM S [RANGE 5 minutes] {trailing}")
    assert pointed_at(refused) == "WITHIN"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a[slide DIV 2], m[late IS NULL], m[source] FROM S [RANGE 5 minutes]",
        "SELECT MAX(v) FROM S [RANGE 5 minutes] WHERE m[late IS NULL] GROUP BY m[source], a[slide DIV 2]",
        "SELECT MAX(v) FROM S [RANGE 5 minutes] INNER JOIN t ON t.m[source] = S.a[slide DIV 2]",
        "SELECT a IS DISTINCT FROM m[source], EXTRACT(YEAR FROM a[late]) FROM S [RANGE 5 minutes]",
        "SELECT x FROM t LEFT JOIN (SELECT MAX(v) AS x FROM db.S [RANGE 5 minutes] AS s GROUP BY m[per]) ON x = y",
        "SELECT MAX(v) FROM t CROSS JOIN S [RANGE 5 minutes]",
    ],
)
def test_an_element_of_an_array_or_a_map_is_not_a_window(text: str) -> None:
    query = parse(text)
    assert len(query.windows) == 1
    assert print_query(query) == text


def test_a_window_must_follow_the_name_of_a_stream() -> None:
    for text in (
        "FROM S [RANGE 5 minutes] SELECT MAX(v)",
        "SELECT MAX(v) FROM t, S [RANGE 5 minutes]",
        "SELECT MAX(v) FROM S AS s [RANGE 5 minutes]",
        "SELECT x FROM (FROM S [RANGE 5 minutes] SELECT MAX(v) AS x)",
        "SELECT 1 UNION ALL SELECT MAX(v) FROM db.`the S` s [RANGE 5 minutes]",
    ):
        assert len(parse(text).windows) == 1, text
    for text in (
        "SELECT MAX(v) [RANGE 5 minutes] FROM S",
        "SELECT MAX(v) FROM ? S [RANGE 5 minutes]",
        "SELECT MAX(v) FROM range(10) AS S [RANGE 5 minutes]",
        "SELECT MAX(v) FROM (SELECT 1 AS v) AS S [RANGE 5 minutes]",
    ):
        with pytest.raises(QueryTextError, match="window-without-stream"):
            parse(text)


USING = {
    "USING": ("USING", "wrong-using"),
    "USING (k 200": ("(", "wrong-using"),
    "USING (k 200,)": ("USING", "wrong-using"),
    "USING (q 200)": ("q", "unknown-option"),
    "USING ('k' 200)": ("'k'", "unknown-option"),
    "USING (k 200, k 100)": ("k", "repeated-option"),
    "USING (k many)": ("many", "wrong-value"),
    "USING (k 2.5)": ("2.5", "wrong-value"),
    "USING (k)": ("k", "wrong-value"),
    "USING (t_max 5)": ("5", "wrong-value"),
    "USING (while_interrupted 5 parsecs)": ("5 parsecs", "wrong-value"),
    "USING (order 7)": ("7", "wrong-value"),
    "USING (sum_of_errors 3)": ("3", "wrong-value"),
    "USING (k 200) USING (k 200)": ("USING", "behind-the-query"),
}


@pytest.mark.parametrize(("clause", "found"), USING.items())
def test_a_wrong_using_clause_is_refused_at_the_character(clause: str, found: tuple[str, str]) -> None:
    pointed, condition = found
    with pytest.raises(QueryTextError, match=rf"\[{condition}\]") as refused:
        parse(f"SELECT SUM(v) FROM S WITHIN 1 CONFIDENCE 95% {clause}")
    assert pointed_at(refused) == pointed


def test_an_option_that_is_nearly_right_gets_a_hint() -> None:
    with pytest.raises(QueryTextError, match="did you mean capacity"):
        parse("SELECT SUM(v) FROM S WITHIN 1 CONFIDENCE 95% USING (capacty 3)")
