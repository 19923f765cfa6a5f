"""Parses a text into a query.

Window clauses are removed from Spark's tokens, and sqlglot's Spark dialect parses the rest. The tokens carry their
positions, so each window can then be attached to the table that it followed.
"""

from __future__ import annotations

import dataclasses
import re

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryTextError
from slackwater.language.brackets import WindowInText, split_windows
from slackwater.language.dialect import SPARK, spark_sql
from slackwater.language.roundtrip_check import check_roundtrip
from slackwater.language.safety import refuse_code
from slackwater.language.spark_tokenizer import PARENTHESIS_DEPTH
from slackwater.language.text_errors import find_unclosed, text_error, token_error
from slackwater.language.trailing_clauses import split_trailing_clauses
from slackwater.language.tree import Query, Window, tables_of
from slackwater.names import quoted

_STATEMENTS = (exp.Into, exp.DDL, exp.DML, exp.Command)
_MAX_DEPTH = 400
_BEYOND_A_ROW = (exp.Query, exp.AggFunc, exp.Window, exp.Star)


def parse(text: str, *, allow_code: bool = False) -> Query:
    """Parse a text that holds one query.

    Functions that run code are refused unless ``allow_code`` is true, as the text may come from an untrusted person.
    Parsing takes milliseconds and does not use Spark. A ``QueryTextError`` shows the line, with a caret.

    >>> parse("SELECT MAX(value) FROM Sensors [RANGE 30 seconds]").windows[0][1].range.amount
    30000.0
    """
    queries = parse_script(text, allow_code=allow_code)
    if len(queries) != 1:
        second = queries[1]
        problem = f"the text holds {len(queries)} queries"
        raise text_error(second.text, second.start, "not-one-query", problem, "pass a single query")
    return queries[0]


def parse_script(text: str, *, allow_code: bool = False) -> list[Query]:
    """Parse a text that holds one or more queries, separated by semicolons."""
    text = text.removeprefix("\ufeff")  # the byte order mark that some editors write
    try:
        tokens = list(SPARK.tokenize(text))
    except TokenError as error:
        raise _unreadable(text) from error
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type != TokenType.HINT:
            token.comments.clear()  # Spark must not receive comments of an untrusted author
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    if not any(statements):
        raise _empty_query(text, 0)
    return [_parse_statement(text, statement, allow_code) for statement in statements if statement]


def _parse_statement(text: str, tokens: list[Token], allow_code: bool) -> Query:
    start = tokens[0].start
    tokens, precision, with_error = split_trailing_clauses(text, tokens)
    tokens, found = split_windows(text, tokens)
    if not tokens:
        raise _empty_query(text, start)
    try:
        select = _parse_spark(text, tokens)
        found = [_with_checked_utility(text, one, allow_code) for one in found]
        query = Query(select, _attach_windows(text, select, found), precision, with_error, text, start, tuple(tokens))
        if not allow_code:
            refuse_code(query)
        check_roundtrip(text, tokens, select)
    except RecursionError:
        raise _too_deep(text, tokens) from None
    return query


def _parse_spark(text: str, tokens: list[Token]) -> exp.Query:
    try:
        trees = SPARK.parser().parse(tokens, text)
    except ParseError as error:
        raise _wrong_sql(text, tokens, error) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise _not_a_query(text, tokens[0])
    depths: dict[int, int] = {}
    for node in trees[0].walk():
        depths[id(node)] = depth = depths.get(id(node.parent), 0) + 1
        if depth > _MAX_DEPTH:
            raise RecursionError  # planning would exceed Python's limit later
        if isinstance(node, _STATEMENTS):
            raise _not_a_query(text, _find_token(node.key, tokens))
        # sqlglot accepts any statement inside WITH, and Spark would execute it at once.
        if isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query | exp.Values | exp.Table):
            raise _not_a_query(text, _find_token(node.this.key, tokens))
        # Calls are printed in upper case, also in backquotes. Function names ignore case in Spark.
        if isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier):
            node.this.set("this", node.name.upper())
    return trees[0]


def _attach_windows(text: str, select: exp.Query, found: list[WindowInText]) -> tuple[tuple[int, Window], ...]:
    """Return each window with the index of the table that it follows."""
    tables = tables_of(select)
    windows: dict[int, Window] = {}
    repeated = False
    for one in found:
        index = next((i for i, table in enumerate(tables) if one.table_end in _name_ends(table)), None)
        if index is None:
            problem = "this window does not follow the name of a stream"
            raise text_error(text, one.bracket, "window-without-stream", problem, "write FROM name […]")
        repeated |= index in windows
        windows[index] = one.window
    if repeated:
        remedy = "remove one of them"
        raise text_error(text, found[-1].bracket, "two-windows", "one stream has two windows", remedy)
    return tuple(sorted(windows.items()))


def _with_checked_utility(text: str, found: WindowInText, allow_code: bool) -> WindowInText:
    """The window with the expression of SHED BY as Spark receives it; refuses what is not an expression over a row."""
    window = found.window
    if window.shed_by is None:
        return found
    start, length = window.positions["SHED"]
    remedy = "write a number per row: SHED BY priority, or SHED BY (amount * 2)"
    try:
        parsed = parse(f"SELECT {window.shed_by}", allow_code=allow_code)
    except QueryTextError as error:
        raise text_error(text, start, error.condition, f"SHED BY: {error.problem}", remedy, length=length) from None
    select = parsed.select
    clauses = {name for name, value in select.args.items() if value} - {"expressions"}
    columns = select.expressions if isinstance(select, exp.Select) else []
    trailing = parsed.precision is not None or parsed.with_error
    if len(columns) != 1 or clauses or trailing or columns[0].find(*_BEYOND_A_ROW):
        problem = f"SHED BY ({window.shed_by}) is not an expression over a row"
        raise text_error(text, start, "wrong-utility", problem, remedy, length=length)
    utility = columns[0].unalias()
    plain = isinstance(utility, exp.Column) and len(utility.parts) == 1
    sql = quoted(utility.name) if plain else spark_sql(utility)
    return dataclasses.replace(found, window=dataclasses.replace(window, shed_by=sql))


def _name_ends(table: exp.Table) -> set[int]:
    """Return the last positions of a table's name and alias; a window may follow either."""
    if not isinstance(table.this, exp.Identifier):
        return set()  # a function call or a parameter, which cannot be a stream
    names = [table.this, table.args.get("alias") and table.args["alias"].this]
    return {int(name.meta["end"]) for name in names if isinstance(name, exp.Identifier) and "end" in name.meta}


def _find_token(word: str, tokens: list[Token]) -> Token:
    """Return the first token with this text, or the first token of all."""
    return next((token for token in tokens if token.text.lower() == word), tokens[0])


# Errors -----------------------------------------------------------------------------------------------------


def _empty_query(text: str, position: int) -> QueryTextError:
    return text_error(text, position, "empty-query", "the text holds no query", "write SELECT … FROM …")


def _unreadable(text: str) -> QueryTextError:
    start, mark = find_unclosed(text) or (len(text.rstrip()), "")
    problem = f"this {mark} is never closed" if mark else "the text cannot be split into tokens"
    return text_error(text, start, "unreadable-text", problem, "close every quote and comment", length=len(mark) or 1)


def _too_deep(text: str, tokens: list[Token]) -> QueryTextError:
    depth, deepest, position = 0, 0, tokens[0].start
    for token in tokens:
        depth += PARENTHESIS_DEPTH.get(token.token_type, 0)
        if depth > deepest:
            deepest, position = depth, token.start
    return text_error(
        text, position, "too-deep", "the query is nested too deeply", "name its parts in a WITH clause, or simplify it"
    )


def _not_a_query(text: str, token: Token) -> QueryTextError:
    remedy = "write a SELECT; WITH and UNION are allowed"
    return token_error(text, token, "not-a-query", f"{token.text.upper()} is not a query", remedy)


def _wrong_sql(text: str, tokens: list[Token], error: ParseError) -> QueryTextError:
    first = error.errors[0] if error.errors else {}
    reason = re.sub(r"Required keyword.*", "something is missing", str(first.get("description") or error)).rstrip(".")
    line, column = first.get("line"), first.get("col")
    at = tokens[-1]
    for token in tokens:
        if (token.line, token.col) == (line, column):
            at = token
    problem = f"this is not Spark SQL: {reason[:1].lower()}{reason[1:]}"
    return token_error(text, at, "wrong-sql", problem, "fix the SQL at the caret")
