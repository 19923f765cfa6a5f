"""What Spark would refuse in the parts of a SELECT besides its expressions: USING, EXCEPT, generators, given names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.names import near
from slackwater.plan.text_positions import node_error

Columns = Sequence[tuple[str, str]] | None
"""Name and type class of columns; None if they are not known."""
GENERATORS = {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack"}
"""Functions that make several rows of one."""


class SelectCheck:
    """Checks the SELECTs of one query."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def check(self, select: exp.Select, sources: Sequence[tuple[str, Columns]]) -> None:
        """Refuse USING and EXCEPT with a column that is not there, and several generators.

        ``sources`` are the tables of FROM and of the joins, in their order.
        """
        known = [[name.lower() for name, _ in columns] for _, columns in sources if columns is not None]
        for join in select.args.get("joins") or []:
            for name in join.args.get("using") or []:
                if len(known) == len(sources) == 2 and not all(name.name.lower() in columns for columns in known):
                    lacking = next(
                        alias
                        for (alias, _), columns in zip(sources, known, strict=True)
                        if name.name.lower() not in columns
                    )
                    problem = f"{lacking} has no column {name.name!r}"
                    self._refuse(name, "unknown-column", problem, "name a column of both tables in USING, or write ON")
        names = [name for columns in known for name in columns]
        for star in select.expressions:
            for left_out in (star.args.get("except_") or []) if isinstance(star, exp.Star) else []:
                if len(known) == len(sources) and left_out.name.lower() not in names:
                    problem = f"there is no column {left_out.name!r}{near(left_out.name, names)}"
                    self._refuse(left_out, "unknown-column", problem, "correct the name after EXCEPT")
        calls = [one.this if isinstance(one, exp.Alias | exp.Aliases) else one for one in select.expressions]
        generators = [one for one in calls if isinstance(one, exp.Anonymous) and one.name.lower() in GENERATORS]
        if len(generators) > 1:
            problem = f"{generators[1].name.lower()} is the second function in this SELECT that makes rows"
            self._refuse(generators[1], "misplaced-generator", problem, "put one of them into a subquery")

    def check_names_given(self, source: exp.Expr, columns: Columns) -> None:
        """Refuse ``AS t(a, b)`` if t has not two columns."""
        alias = source.args.get("alias")
        names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if names and columns is not None and len(names) != len(columns):
            problem = f"{source.alias} is given {len(names)} names, and has {len(columns)} columns"
            self._refuse(names[0], "different-columns", problem, "name every column")

    def _refuse(self, node: exp.Expr, condition: str, problem: str, remedy: str) -> NoReturn:
        raise node_error(self.query, node, condition, problem, remedy, length=len(spark_sql(node)))
