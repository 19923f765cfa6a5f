"""Refuses Spark SQL that can run code of the author's choice.

A query text may come from an untrusted person. ``reflect``, ``java_method`` and ``try_reflect`` call any static Java
method, ``TRANSFORM … USING`` starts any program, and ``IDENTIFIER('…')`` can build any of these names from parts. The
check searches the whole tree by function name: subqueries, CTEs and lateral views, in any case and quoting. An alias
or a CTE therefore cannot hide them.

``${…}`` is refused too. Spark substitutes it in the text before parsing, with a setting, an environment variable or
nothing, so it could also build these names.
"""

from __future__ import annotations

from sqlglot import exp

from slackwater.language.dialect import spark_sql
from slackwater.language.text_errors import text_error
from slackwater.language.tree import Query

CODE_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect"})
_VARIABLE = "${"


def refuse_code(query: Query) -> None:
    """Raise ``QueryTextError`` for a query that can run code.

    >>> from slackwater.language import parse
    >>> parse("SELECT Reflect('java.lang.System', 'exit', 1)")
    Traceback (most recent call last):
    ...
    slackwater.errors.QueryTextError: [code-in-query] reflect runs code; ...
    """
    # The printed query is searched too: an escape such as '\u0024{x}' is resolved there.
    _refuse_variables(query.text, query.text)
    _refuse_variables(query.text, spark_sql(query.select))
    for node in query.select.walk():
        name = _code_name(node)
        if name is None:
            continue
        position = _position(node)
        start = query.text.lower().find(name) if position is None else position
        raise text_error(
            query.text,
            max(start, 0),
            "code-in-query",
            f"{name} runs code",
            "remove it, or pass allow_code=True if you trust the text",
            length=len(name),
        )


def _refuse_variables(text: str, searched: str) -> None:
    if _VARIABLE in searched:
        raise text_error(
            text,
            max(text.find(_VARIABLE), 0),
            "variable-in-query",
            f"Spark replaces {_VARIABLE}…}} by a setting or an environment variable before it parses the query",
            "write the value itself, or pass allow_code=True if you trust the text",
            length=len(_VARIABLE),
        )


def _code_name(node: exp.Expr) -> str | None:
    """Return the lower-case name of a construct that runs code, or None."""
    if isinstance(node, exp.QueryTransform):
        return "transform"
    if isinstance(node, exp.Func):
        called = node.name if isinstance(node, exp.Anonymous) else ""
        if called.lower() in CODE_FUNCTIONS:
            return called.lower()
        if called.lower() == "identifier":
            return "identifier"
    return None


def _position(node: exp.Expr) -> int | None:
    for inner in (node, node.this):
        if isinstance(inner, exp.Expr) and "start" in inner.meta:
            return int(inner.meta["start"])
    return None
