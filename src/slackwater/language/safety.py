"""What of Spark SQL runs code of the caller's choice.

A query text may come from somebody else. ``reflect``, ``java_method`` and ``try_reflect`` call any static Java
method, ``TRANSFORM … USING`` starts any program, and ``IDENTIFIER('…')`` can spell any of these names out of
pieces. They are looked for by name in the whole tree (subqueries, CTEs, lateral views, any case and quoting),
so an alias or a CTE does not hide them. ``${…}`` is looked for in the text itself, as Spark replaces it there
before it reads a word: by a setting or a variable of the environment, or by nothing, which joins what is left.
"""

from __future__ import annotations

from sqlglot import exp

from slackwater.language.dialect import spark_sql
from slackwater.language.text import located
from slackwater.language.tree import Query

CODE_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect"})
_VARIABLE = "${"


def refuse_code(query: Query) -> None:
    """Refuse a query that could run code.

    >>> from slackwater.language import parse
    >>> parse("SELECT Reflect('java.lang.System', 'exit', 1)")
    Traceback (most recent call last):
    ...
    slackwater.errors.QueryTextError: [code-in-query] reflect runs code; ...
    """
    # The second look is for what an escape spells: '\u0024{x}' is printed as it was understood.
    _refuse_variables(query.text, query.text)
    _refuse_variables(query.text, spark_sql(query.select))
    for node in query.select.walk():
        name = _code_name(node)
        if name is None:
            continue
        place = _place(node)
        start = query.text.lower().find(name) if place is None else place
        raise located(
            query.text,
            max(start, 0),
            "code-in-query",
            f"{name} runs code",
            "leave it out, or allow it (allow_code=True) if you trust the text",
            length=len(name),
        )


def _refuse_variables(text: str, where: str) -> None:
    if _VARIABLE in where:
        raise located(
            text,
            max(text.find(_VARIABLE), 0),
            "variable-in-query",
            f"Spark replaces {_VARIABLE}…}} before it reads the query, by a setting or the environment",
            "write the value itself, or allow it (allow_code=True) if you trust the text",
            length=len(_VARIABLE),
        )


def _code_name(node: exp.Expr) -> str | None:
    if isinstance(node, exp.QueryTransform):
        return "transform"
    if isinstance(node, exp.Func):
        called = node.name if isinstance(node, exp.Anonymous) else ""
        if called.lower() in CODE_FUNCTIONS:
            return called.lower()
        if called.lower() == "identifier":
            return "identifier"
    return None


def _place(node: exp.Expr) -> int | None:
    for inner in (node, node.this):
        if isinstance(inner, exp.Expr) and "start" in inner.meta:
            return int(inner.meta["start"])
    return None
