"""Decomposes a standing query (WITHIN): its stream, weights, groups, aggregate and bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from sqlglot import exp

from slackwater.control.deferral import Deferral
from slackwater.language import Measure, Query, Window, spark_sql
from slackwater.plan.deferral_clause import deferral_of
from slackwater.plan.names import table_name
from slackwater.plan.text_positions import position_error
from slackwater.plan.unsupported import clause_words

ANSWER_COLUMNS = ("drift", "error_bound", "interrupted_streams", "next_evaluation_at")

COUNTED = "__counted"
"""The column that replaces the value if streams are counted."""

_EXTREMES: dict[type[exp.Expr], str] = {exp.Max: "max", exp.Min: "min"}
_WINDOW_CLAUSES = ("RANGE", "LANDMARK", "WATTR", "DRATIO", "ARRIVAL", "SOURCE", "DELAY")
_SUPPORTED_CLAUSES = {"expressions", "from_", "joins", "where", "group"}
_LINEAR = exp.Sum | exp.Avg | exp.Count


@dataclass(frozen=True, slots=True)
class StandingShape:
    """The parts of a query with WITHIN. Expressions are Spark SQL.

    - ``time``: the column of WATTR, or None; ``value``: the column of the stream that is aggregated.
    - ``keys``: pairs of name and expression; ``result``: the name of the aggregate in the answer.
    - ``weight``: the factor of a stream's value.
    - ``average``: whether the sum is divided by the number of members.
    - ``single_stream``: whether the aggregate is an extreme of a single stream, as in ``MAX(price)``.
    - ``counts``: if members are counted, the expression that replaces the value, under the name ``COUNTED``.
    - ``extreme``: ``"max"`` or ``"min"`` over the last ``window_ms`` or since ``landmark``, or None.
    - ``table``: the table of weights; ``join``: its key column and the stream's. If both are None, every stream that
      passes the filter is a member.
    - ``stream_filter``, ``table_filter``: the conditions of WHERE on either side.
    - ``deferral``: what USING asks for, or None.
    - ``drop_ratio``, ``arrival``, ``sources``, ``delay_ms``: the other promises on the stream, in its brackets.
    """

    stream: str
    stream_alias: str
    time: str | None
    value: str
    keys: tuple[tuple[str, str], ...]
    result: str
    weight: str
    average: bool
    single_stream: bool
    counts: str | None
    extreme: str | None
    window_ms: float | None
    landmark: str | None
    table: str | None
    join: tuple[str, str] | None
    stream_filter: str | None
    table_filter: str | None
    bound: str | float
    confidence: float
    deferral: Deferral | None
    drop_ratio: float | None
    arrival: str | None
    sources: tuple[str, ...]
    delay_ms: float | None


def standing_shape(
    query: Query, stream: str, stream_columns: list[str] | None, value: str | None = None
) -> StandingShape:
    """Decompose a query with WITHIN over ``stream``, or raise ``QueryTextError``.

    ``value`` is the value column that the stream was registered with, if any. If ``stream_columns`` is None, columns of
    a query with a join must be qualified.
    """
    return _Decomposer(query, stream, stream_columns, value).shape()


class _Decomposer:
    def __init__(self, query: Query, stream: str, columns: list[str] | None, value: str | None) -> None:
        self.query, self.value = query, value
        self.columns = None if columns is None else {column.lower() for column in columns}
        if not isinstance(query.select, exp.Select):
            self._refuse("a standing query must be a single SELECT", "write SELECT … FROM stream … WITHIN …")
        self.select: exp.Select = query.select
        tables = query.tables()
        streams = [table for table in tables if table.name.lower() == stream.lower()]
        inner = next((part for part in self.select.find_all(exp.Select) if part is not self.select), None)
        if inner is not None:
            remedy = "make its result a stream: sw.stream('Name', …); to compare with another aggregate, use a window"
            self._refuse(f"a standing query cannot contain a query: {spark_sql(inner)}", remedy)
        if len(self.query.windows) > 1:
            self._refuse(
                "a standing query reads one stream", "join the streams first: sw.stream('Joined', sw.sql(…), …)"
            )
        if len(tables) > 2 or len(streams) != 1:
            self._refuse("a standing query reads one stream and at most one table of weights", "join one table")
        self.table = streams[0]
        others = [table for table in tables if table is not self.table]
        self.other = others[0] if others else None

    def shape(self) -> StandingShape:
        select = self.select
        for part, value in select.args.items():
            if value and part not in _SUPPORTED_CLAUSES:
                self._refuse(f"a standing query cannot have {clause_words(part)}", "apply it to the answers")
        if self.query.with_error:
            self._refuse("the answers of a standing query already have an error_bound", "remove WITH ERROR")
        assert self.query.precision is not None
        precision = self.query.precision
        keys, aggregate, name = self._projection()
        extreme, inner = self._extreme(aggregate)
        window_ms, landmark, time = self._window(extreme is not None)
        average = isinstance(inner, exp.Avg)
        counts = self._counts(inner) if isinstance(inner, exp.Count) else None
        weight, value = "1.0D", COUNTED
        if counts is None:
            weight, value = self._weight(inner.this if isinstance(inner, _LINEAR) else inner)
        stream_filter, table_filter = self._filters()
        return StandingShape(
            stream=self.table.name,
            stream_alias=self.table.alias_or_name,
            time=time,
            value=value,
            keys=keys,
            result=name,
            weight=weight,
            average=average,
            single_stream=not isinstance(inner, _LINEAR),
            counts=counts,
            extreme=extreme,
            window_ms=window_ms,
            landmark=landmark,
            table=None if self.other is None else table_name(self.other),
            join=self._join(),
            stream_filter=stream_filter,
            table_filter=table_filter,
            bound=f"{100 * precision.bound!r}%" if precision.relative else precision.bound,
            confidence=precision.confidence,
            deferral=deferral_of(self.query, extreme=extreme is not None),
            **self._other_promises(),
        )

    def _projection(self) -> tuple[tuple[tuple[str, str], ...], exp.Expr, str]:
        """Return the keys, the aggregate, and the aggregate's name."""
        group = self.select.args.get("group")
        grouped = [spark_sql(key) for key in group.expressions] if group else []
        keys, found = [], []
        for item in self.select.expressions:
            bare = item.unalias()
            if bare.find(exp.AggFunc):
                found.append((bare, item.alias or "value"))
            elif spark_sql(bare) in grouped or item.alias in grouped:
                self._check_key(bare)
                keys.append((item.alias_or_name or spark_sql(bare), self._unqualified(bare)))
            else:
                self._refuse(f"{spark_sql(bare)} is neither grouped by nor aggregated", "add it to GROUP BY")
        if len(found) != 1:
            self._refuse(f"a standing query has one aggregate, not {len(found)}", "write one query per aggregate")
        if len(keys) != len(grouped):
            self._refuse("a column of GROUP BY is not selected", "select each of them once")
        return tuple(keys), *found[0]

    def _extreme(self, aggregate: exp.Expr) -> tuple[str | None, exp.Expr]:
        """Split ``MAX(AVG(x))`` into the kind of extreme, or None, and the aggregate inside."""
        kind = _EXTREMES.get(type(aggregate))
        inner = aggregate.this if kind else aggregate
        if isinstance(inner, _LINEAR) or (kind and not inner.find(exp.AggFunc)):
            return kind, inner
        return self._refuse(
            f"{spark_sql(aggregate)} is neither a linear aggregate nor an extreme of one",
            "use SUM, AVG or COUNT, or MAX(AVG(…)) with RANGE or LANDMARK",
        )

    def _counts(self, count: exp.Count) -> str:
        """Return 1 for rows that count, else null. A stream is counted if its newest row counts."""
        if isinstance(count.this, exp.Star | exp.Literal):
            return "1.0D"
        if not isinstance(count.this, exp.Column) or count.expressions or not self._on_stream(count.this):
            self._refuse(f"{spark_sql(count)} does not count streams", "write COUNT(*), or COUNT(column of the stream)")
        return f"CASE WHEN {self._unqualified(count.this)} IS NOT NULL THEN 1.0D END"

    def _window(self, extreme: bool) -> tuple[float | None, str | None, str | None]:
        """Return the length of the window in milliseconds, the landmark, and the time column, each or None."""
        windowed = self.query.windowed()
        if not windowed:
            if extreme:
                self._refuse("MAX and MIN need a window", "write FROM stream [RANGE 30 minutes], or [LANDMARK '…']")
            return None, None, None
        window = windowed[0][1]
        for keyword, position in window.positions.items():
            if keyword not in _WINDOW_CLAUSES:
                problem = f"{keyword} cannot be combined with WITHIN"
                remedy = f"write only {', '.join(_WINDOW_CLAUSES)}"
                raise position_error(self.query, position, "not-standing", problem, remedy)
        if not extreme and (window.range is not None or window.landmark is not None):
            self._refuse("SUM, AVG and COUNT take the newest values and no window", "write MAX(AVG(…))")
        if extreme and window.range is None and window.landmark is None:
            self._refuse("MAX and MIN need a window", "write RANGE or LANDMARK")
        if window.range is not None and window.range.measure is not Measure.TIME:
            self._refuse("the window of a standing query must be a time", "write RANGE 30 minutes")
        landmark = None if window.landmark is None else str(window.landmark)
        return None if window.range is None else window.range.amount, landmark, window.attribute

    def _other_promises(self) -> dict[str, Any]:
        """The promises of completeness and timeliness on the stream, and their options."""
        windowed = self.query.windowed()
        window = windowed[0][1] if windowed else Window()
        without = {"SOURCE": window.drop_ratio is None}
        without["ARRIVAL"] = window.drop_ratio is None and window.delay_ms is None
        for keyword, unused in without.items():
            if unused and keyword in window.positions:
                promises = "DRATIO or DELAY" if keyword == "ARRIVAL" else "DRATIO"
                problem, remedy = f"{keyword} has no effect without {promises}", f"remove {keyword}, or add a promise"
                raise position_error(self.query, window.positions[keyword], "not-standing", problem, remedy)
        return {
            "drop_ratio": window.drop_ratio,
            "arrival": window.arrival,
            "sources": window.sources,
            "delay_ms": window.delay_ms,
        }

    def _weight(self, product: exp.Expr) -> tuple[str, str]:
        """Return the weight in a product of weight and value, and the value's column."""
        factors = list(_factors(product))
        values = [at for at, (factor, _) in enumerate(factors) if self._is_value(factor)]
        if len(values) != 1 or not factors[values[0]][1]:
            named = self.value or "the stream's value"
            self._refuse(f"{spark_sql(product)} is not {named} times a weight", "write SUM(weight * value)")
        value, _ = factors.pop(values[0])
        for column in (column for factor, _ in factors for column in factor.find_all(exp.Column)):
            if self._on_stream(column):
                problem = f"{spark_sql(column)} belongs to the stream and cannot be a weight"
                self._refuse(problem, "join a table of weights")
        weight = "1.0D"
        for factor, multiplied in factors:
            weight += f" {'*' if multiplied else '/'} ({self._unqualified(factor)})"
        return weight, value.name

    def _is_value(self, factor: exp.Expr) -> bool:
        if not isinstance(factor, exp.Column) or not self._on_stream(factor):
            return False
        return self.value is None or factor.name.lower() == self.value.lower()

    def _on_stream(self, column: exp.Column) -> bool:
        if column.table:
            return column.table.lower() == self.table.alias_or_name.lower()
        if self.other is None:
            return True
        if self.columns is None:
            self._refuse(f"the table of column {column.name} is not known", "write stream.column, or give --schema")
        return column.name.lower() in self.columns

    def _check_key(self, key: exp.Expr) -> None:
        """Refuse a key that is a column of the stream, unless the weights are joined on it."""
        joined = self._join()
        for column in key.find_all(exp.Column):
            same = joined is not None and column.name.lower() in (joined[0].lower(), joined[1].lower())
            if self.other is not None and self._on_stream(column) and not same:
                self._refuse(f"{spark_sql(column)} belongs to the stream", "group by columns of the table of weights")

    def _join(self) -> tuple[str, str] | None:
        """Return the key columns of the join: the table's and the stream's."""
        if self.other is None:
            return None
        joins = self.select.args.get("joins") or []
        if len(joins) != 1 or joins[0].side or (joins[0].kind or "INNER").upper() != "INNER":
            self._refuse("the weights need a plain JOIN", "write FROM stream JOIN table USING (key)")
        using, on = joins[0].args.get("using"), joins[0].args.get("on")
        if using and len(using) == 1:
            return using[0].name, using[0].name
        if isinstance(on, exp.EQ) and isinstance(on.left, exp.Column) and isinstance(on.right, exp.Column):
            sides = {self._on_stream(on.left): on.left.name, self._on_stream(on.right): on.right.name}
            if len(sides) == 2:
                return sides[False], sides[True]
        return self._refuse("the join is not on one key", "write USING (key), or ON stream.key = table.key")

    def _filters(self) -> tuple[str | None, str | None]:
        """Split WHERE into the conditions on the stream and those on the table of weights."""
        where = self.select.args.get("where")
        if where is None:
            return None, None
        sides: dict[bool, list[str]] = {True: [], False: []}
        this = where.this
        for part in this.flatten() if isinstance(this, exp.And) else [this]:
            owners = {self._on_stream(column) for column in part.find_all(exp.Column)} or {True}
            if len(owners) > 1:
                self._refuse(f"{spark_sql(part)} mixes the stream and its weights", "filter on one of them")
            sides[owners.pop()].append(f"({self._unqualified(part)})")
        return " AND ".join(sides[True]) or None, " AND ".join(sides[False]) or None

    def _unqualified(self, part: exp.Expr) -> str:
        """Return the expression as SQL, with its columns unqualified."""
        copy = part.copy()
        for column in list(copy.find_all(exp.Column)):
            bare = exp.column(column.this.copy())
            if column is copy:
                return spark_sql(bare)
            column.replace(bare)
        return spark_sql(copy)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        start = self.query.text.upper().rfind("WITHIN")
        position = (start, len("WITHIN")) if start >= 0 else (0, 1)
        raise position_error(self.query, position, "not-standing", problem, remedy)


def _factors(part: exp.Expr, multiplied: bool = True) -> Iterator[tuple[exp.Expr, bool]]:
    """Yield the factors of a product, and whether each is multiplied rather than divided by."""
    if isinstance(part, exp.Paren):
        yield from _factors(part.this, multiplied)
    elif isinstance(part, exp.Mul | exp.Div):
        yield from _factors(part.left, multiplied)
        yield from _factors(part.right, multiplied == isinstance(part, exp.Mul))
    elif isinstance(part, exp.Neg):
        yield exp.Literal.number(-1), True
        yield from _factors(part.this, multiplied)
    else:
        yield part, multiplied
