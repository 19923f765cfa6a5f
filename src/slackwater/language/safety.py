"""Functions of Spark SQL that run code of the caller's choice.

A query text may come from somebody else. ``reflect``, ``java_method`` and ``try_reflect`` call any static Java
method, ``TRANSFORM … USING`` starts any program, and ``IDENTIFIER('…')`` can spell any of these names out of
pieces. They are looked for by name in the whole tree (subqueries, CTEs, lateral views, any case and quoting),
so an alias or a CTE does not hide them.
"""

from __future__ import annotations

from sqlglot import exp

from slackwater.language.text import located
from slackwater.language.tree import Query

CODE_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect"})


def refuse_code(query: Query) -> None:
    """Refuse a query that could run code.

    >>> from slackwater.language import parse
    >>> parse("SELECT Reflect('java.lang.System', 'exit', 1)")
    Traceback (most recent call last):
    ...
    slackwater.errors.QueryTextError: [code-in-query] reflect runs code; ...
    """
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
