"""Text → query: windows are cut out of Spark's token stream, the rest is parsed by sqlglot's Spark dialect.

Positions survive, since sqlglot's tokens carry them: a window is put back on the table behind whose name it
stood.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryTextError
from slackwater.language.brackets import cut_windows
from slackwater.language.dialect import SPARK
from slackwater.language.faithful import refuse_unfaithful
from slackwater.language.safety import refuse_code
from slackwater.language.tail import cut_tail
from slackwater.language.text import located, unclosed
from slackwater.language.tree import Query, tables_of

_STATEMENTS = (exp.Into, exp.DDL, exp.DML, exp.Command)
_DEEPEST = 400


def parse(text: str, *, allow_code: bool = False) -> Query:
    """The one query that ``text`` says.

    A query text may be a stranger's: functions that run code are refused unless ``allow_code``. It costs
    milliseconds and touches no Spark. It fails with the line and a caret.

    >>> parse("SELECT MAX(value) FROM Sensors [RANGE 30 seconds]").windows[0][1].range.amount
    30000.0
    """
    queries = parse_script(text, allow_code=allow_code)
    if len(queries) != 1:
        raise located(
            queries[1].text,
            queries[1].start,
            "not-one-query",
            f"the text holds {len(queries)} queries",
            "give one query, without others",
        )
    return queries[0]


def parse_script(text: str, *, allow_code: bool = False) -> list[Query]:
    """Every query of a text in which semicolons part them."""
    text = text.removeprefix("\ufeff")  # the mark that some editors put in front of UTF-8
    try:
        tokens = list(SPARK.tokenize(text))
    except TokenError as error:
        raise _unreadable(text) from error
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type != TokenType.HINT:
            token.comments.clear()  # what is handed to Spark holds no stranger's words but the query
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    if not any(statements):
        raise located(text, 0, "empty-query", "there is no query", "write SELECT … FROM …")
    return [_parse_statement(text, statement, allow_code) for statement in statements if statement]


def _unreadable(text: str) -> QueryTextError:
    start, mark = unclosed(text) or (len(text.rstrip()), "")
    problem = f"this {mark} is not closed" if mark else "the text cannot be read"
    return located(text, start, "unreadable-text", problem, "close every quote and comment", length=len(mark) or 1)


def _parse_statement(text: str, tokens: list[Token], allow_code: bool) -> Query:
    start = tokens[0].start
    tokens, precision, with_error = cut_tail(text, tokens)
    tokens, cuts = cut_windows(text, tokens)
    if not tokens:
        raise located(text, start, "empty-query", "there is no query", "write SELECT … FROM …")
    try:
        select = _parse_spark(text, tokens)
        tables = tables_of(select)
        windows = []
        for cut in cuts:
            index = next((i for i, table in enumerate(tables) if cut.behind in _ends(table)), None)
            if index is None:
                raise located(
                    text,
                    cut.bracket,
                    "window-without-stream",
                    "this window stands behind no stream",
                    "write FROM name […]",
                )
            windows.append((index, cut.window))
        indices = [index for index, _ in windows]
        if len(set(indices)) < len(indices):
            raise located(text, cuts[-1].bracket, "two-windows", "one stream has two windows", "leave one of them out")
        query = Query(select, tuple(sorted(windows, key=lambda pair: pair[0])), precision, with_error, text, start)
        if not allow_code:
            refuse_code(query)
        refuse_unfaithful(text, tokens, select)
    except RecursionError:
        raise _too_deep(text, tokens) from None
    return query


def _too_deep(text: str, tokens: list[Token]) -> QueryTextError:
    depth, deepest, place = 0, 0, tokens[0].start
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth > deepest:
            deepest, place = depth, token.start
    return located(
        text,
        place,
        "too-deep",
        "the query is nested too deeply to be read",
        "name its parts in a WITH, or leave some out",
    )


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
        if depth > _DEEPEST:
            raise RecursionError  # it would come later, in a plan
        if isinstance(node, _STATEMENTS):
            raise _not_a_query(text, _token_of(node.key, tokens))
        # What WITH names may be any statement to sqlglot, and Spark runs it at once.
        if isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query | exp.Values | exp.Table):
            raise _not_a_query(text, _token_of(node.this.key, tokens))
        # Spark's functions have names in any case, and calls are printed in capitals, also between backquotes.
        if isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier):
            node.this.set("this", node.name.upper())
    return trees[0]


def _not_a_query(text: str, token: Token) -> QueryTextError:
    return located(
        text,
        token.start,
        "not-a-query",
        f"{token.text.upper()} is no query",
        "only SELECT (with WITH, UNION …) is taken",
        length=token.end - token.start + 1,
    )


def _token_of(key: str, tokens: list[Token]) -> Token:
    """The first token that says the word of a statement, or the first of all."""
    return next((token for token in tokens if token.text.lower() == key), tokens[0])


def _wrong_sql(text: str, tokens: list[Token], error: ParseError) -> QueryTextError:
    first = error.errors[0] if error.errors else {}
    said = re.sub(r"Required keyword.*", "something is missing", str(first.get("description") or error)).rstrip(".")
    line, column = first.get("line"), first.get("col")
    at = tokens[-1]
    for token in tokens:
        if (token.line, token.col) == (line, column):
            at = token
    return located(
        text,
        at.start,
        "wrong-sql",
        f"this is no Spark SQL: {said[:1].lower()}{said[1:]}",
        "mend it at the caret",
        length=at.end - at.start + 1,
    )


def _ends(table: exp.Table) -> set[int]:
    if not isinstance(table.this, exp.Identifier):
        return set()  # a call or a parameter: no stream has a name like that
    names = [table.this, table.args.get("alias") and table.args["alias"].this]
    return {int(name.meta["end"]) for name in names if isinstance(name, exp.Identifier) and "end" in name.meta}
