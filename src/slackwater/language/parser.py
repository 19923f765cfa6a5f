"""Text → query: windows are cut out of Spark's token stream, the rest is parsed by sqlglot's Spark dialect.

Positions survive, since sqlglot's tokens carry them: a window is put back on the table behind whose name it
stood.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryTextError
from slackwater.language.clause import KEYWORDS, parse_clause, percentage
from slackwater.language.dialect import SPARK
from slackwater.language.faithful import refuse_unfaithful
from slackwater.language.safety import refuse_code
from slackwater.language.text import located
from slackwater.language.tree import Precision, Query, Window, tables_of

_VALUE = {TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR}
_READ_FROM = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET}
_STATEMENTS = (exp.Into, exp.DDL, exp.DML, exp.Command)
_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET}


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
            text, 0, "not-one-query", f"the text holds {len(queries)} queries", "give one query, without others"
        )
    return queries[0]


def parse_script(text: str, *, allow_code: bool = False) -> list[Query]:
    """Every query of a text in which semicolons part them."""
    try:
        tokens = list(SPARK.tokenize(text))
    except TokenError as error:
        raise located(
            text, len(text.rstrip()), "unreadable-text", str(error), "close every quote and comment"
        ) from error
    statements: list[list[Token]] = [[]]
    for token in tokens:
        token.comments.clear()  # what is handed to Spark holds no stranger's words but the query
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [_parse_statement(text, statement, allow_code) for statement in statements if statement]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A window as it stood: behind which character, and what it said."""

    behind: int
    bracket: int
    window: Window


def _parse_statement(text: str, tokens: list[Token], allow_code: bool) -> Query:
    tokens, precision, with_error = _cut_tail(text, tokens)
    tokens, cuts = _cut_windows(text, tokens)
    if not tokens:
        raise located(text, 0, "empty-query", "there is no query", "write SELECT … FROM …")
    select = _parse_spark(text, tokens)
    tables = tables_of(select)
    windows = []
    for cut in cuts:
        index = next((i for i, table in enumerate(tables) if cut.behind in _ends(table)), None)
        if index is None:
            raise located(
                text, cut.bracket, "window-without-stream", "this window stands behind no stream", "write FROM name […]"
            )
        windows.append((index, cut.window))
    indices = [index for index, _ in windows]
    if len(set(indices)) < len(indices):
        raise located(text, cuts[-1].bracket, "two-windows", "one stream has two windows", "leave one of them out")
    query = Query(select, tuple(sorted(windows, key=lambda pair: pair[0])), precision, with_error, text)
    if not allow_code:
        refuse_code(query)
    refuse_unfaithful(text, tokens, select)
    return query


def _parse_spark(text: str, tokens: list[Token]) -> exp.Query:
    try:
        trees = SPARK.parser().parse(tokens, text)
    except ParseError as error:
        raise _wrong_sql(text, tokens, error) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise _not_a_query(text, tokens[0])
    for node in trees[0].walk():
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
    said = str(first.get("description") or error).rstrip(".")
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
    names = [table.this, table.args.get("alias") and table.args["alias"].this]
    return {int(name.meta["end"]) for name in names if isinstance(name, exp.Identifier) and "end" in name.meta}


def _cut_windows(text: str, tokens: list[Token]) -> tuple[list[Token], list[_Cut]]:
    kept: list[Token] = []
    cuts: list[_Cut] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type != TokenType.L_BRACKET or not kept or not _opens_window(kept, tokens, at):
            kept.append(token)
            at += 1
            continue
        close = next((i for i in range(at, len(tokens)) if tokens[i].token_type == TokenType.R_BRACKET), None)
        if close is None:
            raise located(text, token.start, "open-bracket", "this window is not closed", "write ] behind it")
        cuts.append(_Cut(kept[-1].end, token.start, parse_clause(text, token.end + 1, tokens[close].start)))
        at = close + 1
    return kept, cuts


def _opens_window(before: list[Token], tokens: list[Token], at: int) -> bool:
    """Whether the bracket at ``at`` is a window and not an element of an array or a map.

    ``m[source]`` is an element: a window's first word is followed by a value. Right behind a table in FROM no
    element is possible, so there a misspelt word is still read as a window, to be refused with a caret.
    """
    follows = tokens[at + 1 : at + 3]
    if len(follows) < 2:
        return bool(follows) and _behind_table(before)
    if follows[0].token_type == TokenType.R_BRACKET:
        return _behind_table(before)
    if follows[0].token_type in (TokenType.NUMBER, TokenType.STRING):
        return False
    if follows[0].text.upper() in KEYWORDS:
        return follows[1].token_type in _VALUE or follows[1].text.isidentifier() or _behind_table(before)
    return follows[1].token_type in _VALUE and _behind_table(before)


def _behind_table(before: list[Token]) -> bool:
    """Whether the tokens end in ``FROM name``, ``JOIN a.b`` or ``FROM name AS alias``."""
    at = len(before) - 1
    words = 0
    while at >= 0 and before[at].token_type not in _READ_FROM:
        if before[at].token_type in _CLOSES | _OPENS or words > 6:
            return False
        words += 1
        at -= 1
    return at >= 0 and words > 0 and before[at].token_type != TokenType.COMMA


def _cut_tail(text: str, tokens: list[Token]) -> tuple[list[Token], Precision | None, bool]:
    """Take ``WITHIN … CONFIDENCE …`` and ``WITH ERROR`` off the end of a query."""
    precision, with_error, depth = None, False, 0
    cut = len(tokens)
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        following = tokens[at + 1].text.upper() if at + 1 < len(tokens) else ""
        word = token.text.upper()
        if depth == 0 and word == "WITHIN" and following not in ("GROUP", "", ".", ",", ")"):
            cut = at
            break
        if depth == 0 and word == "WITH" and following == "ERROR" and _ends_with_error(tokens, at):
            cut = at
            break
    tail = tokens[cut:]
    while tail:
        if tail[0].text.upper() == "WITH" and len(tail) > 1 and tail[1].text.upper() == "ERROR":
            with_error, tail = True, tail[2:]
        elif tail[0].text.upper() == "WITHIN" and precision is None:
            precision, tail = _precision(text, tail)
        else:
            raise located(
                text,
                tail[0].start,
                "behind-the-query",
                f"{tail[0].text!r} cannot stand behind the query",
                "only WITHIN … CONFIDENCE … and WITH ERROR can",
                length=tail[0].end - tail[0].start + 1,
            )
    return tokens[:cut], precision, with_error


def _ends_with_error(tokens: list[Token], at: int) -> bool:
    return at + 2 == len(tokens) or tokens[at + 2].text.upper() == "WITHIN"


def _precision(text: str, tail: list[Token]) -> tuple[Precision, list[Token]]:
    words = [token.text.upper() for token in tail[:6]] + [""] * 6
    relative = words[2] == "%"
    confidence = 2 + relative
    well_formed = (
        tail[1].token_type == TokenType.NUMBER
        and words[confidence] == "CONFIDENCE"
        and len(tail) > confidence + 2
        and tail[confidence + 1].token_type == TokenType.NUMBER
        and words[confidence + 2] == "%"
    )
    if not well_formed:
        raise located(
            text,
            tail[0].start,
            "wrong-precision",
            "this is no precision",
            "write WITHIN 0.5 CONFIDENCE 95%, or WITHIN 2% CONFIDENCE 95%",
            length=6,
        )
    bound = percentage(words[1]) if relative else float(words[1])
    belief = percentage(words[confidence + 1])
    if not 0 < belief < 1:
        raise located(
            text,
            tail[confidence + 1].start,
            "invalid-confidence",
            f"CONFIDENCE {words[confidence + 1]}% can never be kept or always is",
            "write more than 0% and less than 100%",
            length=len(words[confidence + 1]),
        )
    if bound <= 0:
        raise located(
            text, tail[1].start, "invalid-bound", f"WITHIN {words[1]} allows no error", "write a bound above 0"
        )
    return Precision(bound, relative, belief), tail[confidence + 3 :]
