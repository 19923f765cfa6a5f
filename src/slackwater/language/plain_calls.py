"""The tree of a query in which every call is a name with arguments, in the order in which they are written.

sqlglot gives many functions nodes of their own, with arguments in places of their own. A check of names and types needs
what the user wrote.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import SqlglotError

from slackwater.language.dialect import FaithfulSpark, FaithfulSparkParser
from slackwater.language.tree import Query, tables_of

_WITH_UNIT = {"DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}
"""Calls whose first argument may be a unit: ``DATEDIFF(DAY, a, b)``."""


_PERCENTILES = ("APPROX_PERCENTILE", "PERCENTILE_APPROX")


class _PlainParser(FaithfulSparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar = {
        name: read for name, read in FaithfulSparkParser.FUNCTION_PARSERS.items() if name not in _PERCENTILES
    }


class _PlainSpark(FaithfulSpark):
    Parser = _PlainParser


_PLAIN = _PlainSpark()


def with_plain_calls(query: Query) -> Query | None:
    """The query with another tree, whose tables are the same in the same order; None if there is no such tree."""
    try:
        trees = _PLAIN.parser().parse(list(query.tokens), query.text)
    except SqlglotError:
        return None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return None
    select = trees[0]
    if [table.name for table in tables_of(select)] != [table.name for table in query.tables()]:
        return None
    for call in select.find_all(exp.Anonymous):
        unit = call.expressions[0] if len(call.expressions) == 3 else None
        if call.name.upper() in _WITH_UNIT and isinstance(unit, exp.Column):
            unit.replace(exp.var(unit.name))
    return Query(select, query.windows, query.precision, query.with_error, query.text, query.start, query.tokens)
