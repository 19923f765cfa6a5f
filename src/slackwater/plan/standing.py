"""A standing query taken apart: which stream, which weights, which groups, which bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from slackwater.language import Measure, Query, print_query, spark_sql
from slackwater.language.text import located
from slackwater.plan.catalog import Catalog
from slackwater.plan.names import table_name
from slackwater.units import duration_text, percent

ANSWER_COLUMNS = ("drift", "error_bound", "interrupted_streams", "next_evaluation_at")

COUNTED = "__counted"
"""The column that stands for the value where streams are counted."""

_EXTREMES: dict[type[exp.Expr], str] = {exp.Max: "max", exp.Min: "min"}
_TAKEN = {"expressions", "from_", "joins", "where", "group"}
_LINEAR = exp.Sum | exp.Avg | exp.Count


@dataclass(frozen=True, slots=True)
class StandingShape:
    """What a query with WITHIN asks for; expressions are Spark SQL.

    ``keys`` are (name, expression); ``weight`` multiplies a stream's value; ``average`` divides by the number of
    members, ``bare`` says that there is one member alone; ``counts`` is what takes the place of the value, under the
    name ``COUNTED``, where members are counted; ``extreme`` is taken over ``window_ms`` or since
    ``landmark``. ``table`` holds the weights, joined by ``join`` (its column, the stream's), or is None where every
    stream that passes the filter is a member.
    """

    stream: str
    stream_alias: str
    time: str | None
    value: str
    keys: tuple[tuple[str, str], ...]
    result: str
    weight: str
    average: bool
    bare: bool
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


def standing_shape(
    query: Query, stream: str, stream_columns: list[str] | None, value: str | None = None
) -> StandingShape:
    """The shape of a query with WITHIN over ``stream``, or a refusal that says what a standing query is.

    ``value`` is the column that the stream was registered with, where it was. Where the stream's columns are not known
    the text must say whose each column is.
    """
    return _Reader(query, stream, stream_columns, value).shape()


def explain_standing(query: Query, catalog: Catalog, stream: str | None = None, value: str | None = None) -> str:
    """A standing query as text: one fact a line.

    Unless it is named, the stream is the table with a window, else the first one. ``value`` is that of
    ``standing_shape``.
    """
    windowed = query.windowed()
    name = stream or (windowed[0][0] if windowed else query.tables()[0]).name
    known = catalog.find(name)
    shape = standing_shape(query, name, None if known is None else list(known.columns), value)
    time = shape.time or (None if known is None else known.time) or "its time column"
    assert query.precision is not None
    bound = percent(query.precision.bound) if query.precision.relative else f"{query.precision.bound:g}"
    linear = f"{'average' if shape.average else 'sum'} of {shape.value}" if shape.counts is None else "count of streams"
    window = "the newest values"
    if shape.extreme is not None:
        since = (
            f"since {shape.landmark}" if shape.window_ms is None else f"of the last {duration_text(shape.window_ms)}"
        )
        window, linear = since, f"{shape.extreme} of the {linear}"
    weights = "every stream that passes the filter is a member of its group"
    if shape.table is not None and shape.join is not None:
        weights = f"{shape.table}, by {shape.join[0]}: {shape.weight}"
    lines = [
        ("query", print_query(query)),
        ("stream", f"{shape.stream}, ordered by {time}"),
        ("aggregate", linear),
        ("window", window),
        ("weights", weights),
        ("path", "standing: evaluated when the answer may have left its bound, not at every tick"),
        ("precision", f"within {bound} at {percent(query.precision.confidence)} confidence"),
        ("results", ", ".join([*(key for key, _ in shape.keys), "at", shape.result, *ANSWER_COLUMNS])),
    ]
    return "\n".join(f"{name:<11} {text}" for name, text in lines) + "\n"


class _Reader:
    def __init__(self, query: Query, stream: str, columns: list[str] | None, value: str | None) -> None:
        self.query, self.value = query, value
        self.columns = None if columns is None else {column.lower() for column in columns}
        if not isinstance(query.select, exp.Select):
            self._refuse("a standing query is one SELECT", "write SELECT … FROM stream … WITHIN …")
        self.select: exp.Select = query.select
        tables = query.tables()
        mine = [table for table in tables if table.name.lower() == stream.lower()]
        if len(tables) > 2 or len(mine) != 1:
            self._refuse("a standing query reads one stream, and at most one table of weights", "join one table")
        self.table = mine[0]
        others = [table for table in tables if table is not self.table]
        self.other = others[0] if others else None

    def shape(self) -> StandingShape:
        select = self.select
        for part, value in select.args.items():
            if value and part not in _TAKEN:
                self._refuse(f"a standing query has no {part.strip('_').upper()}", "filter its answers instead")
        if self.query.with_error:
            self._refuse("the answers of a standing query bring their own error_bound", "leave WITH ERROR out")
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
            bare=not isinstance(inner, _LINEAR),
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
        )

    def _projection(self) -> tuple[tuple[tuple[str, str], ...], exp.Expr, str]:
        group = self.select.args.get("group")
        grouped = [spark_sql(key) for key in group.expressions] if group else []
        keys, found = [], []
        for item in self.select.expressions:
            bare = item.unalias()
            if bare.find(exp.AggFunc):
                found.append((bare, item.alias or "value"))
            elif spark_sql(bare) in grouped or item.alias in grouped:
                self._check_side(bare)
                keys.append((item.alias_or_name or spark_sql(bare), self._unqualified(bare)))
            else:
                self._refuse(f"{spark_sql(bare)} is neither grouped by nor aggregated", "add it to GROUP BY")
        if len(found) != 1:
            self._refuse(f"a standing query has one aggregate, not {len(found)}", "write one query for each")
        if len(keys) != len(grouped):
            self._refuse("every column of GROUP BY names the answer", "select each of them once")
        return tuple(keys), *found[0]

    def _extreme(self, aggregate: exp.Expr) -> tuple[str | None, exp.Expr]:
        kind = _EXTREMES.get(type(aggregate))
        inner = aggregate.this if kind else aggregate
        if isinstance(inner, _LINEAR) or (kind and not inner.find(exp.AggFunc)):
            return kind, inner
        return self._refuse(
            f"{spark_sql(aggregate)} is no linear aggregate, nor an extreme of one",
            "use SUM, AVG or COUNT, or MAX(AVG(…)) with RANGE or LANDMARK",
        )

    def _counts(self, count: exp.Count) -> str:
        """One for every row that counts: a stream is counted while its newest row is such a one."""
        if isinstance(count.this, exp.Star | exp.Literal):
            return "1.0D"
        if not isinstance(count.this, exp.Column) or count.expressions or not self._on_stream(count.this):
            self._refuse(f"{spark_sql(count)} counts no streams", "write COUNT(*), or COUNT of a column of the stream")
        return f"CASE WHEN {self._unqualified(count.this)} IS NOT NULL THEN 1.0D END"

    def _window(self, extreme: bool) -> tuple[float | None, str | None, str | None]:
        windowed = self.query.windowed()
        if not windowed:
            if extreme:
                self._refuse("MAX and MIN need a window", "write FROM stream [RANGE 30 minutes], or [LANDMARK '…']")
            return None, None, None
        window = windowed[0][1]
        allowed = {"RANGE", "LANDMARK", "WATTR"}
        for keyword, (start, length) in window.places.items():
            if keyword not in allowed:
                raise located(
                    self.query.text,
                    start,
                    "not-standing",
                    f"{keyword} does not go with WITHIN",
                    "keep RANGE, LANDMARK and WATTR; put the stream under another promise first",
                    length=length,
                )
        if not extreme and (window.range is not None or window.landmark is not None):
            self._refuse("SUM, AVG and COUNT have no window: they are of the newest values", "write MAX(AVG(…))")
        if extreme and window.range is None and window.landmark is None:
            self._refuse("MAX and MIN need a window", "write RANGE or LANDMARK")
        if window.range is not None and window.range.measure is not Measure.TIME:
            self._refuse("the window of a standing query is a time", "write RANGE 30 minutes")
        landmark = None if window.landmark is None else str(window.landmark)
        return None if window.range is None else window.range.amount, landmark, window.attribute

    def _weight(self, product: exp.Expr) -> tuple[str, str]:
        """The factor of the stream's value in a product, and the value's column."""
        factors: list[exp.Expr] = []
        upside: list[bool] = []
        _factors(product, True, factors, upside)
        values = [at for at, factor in enumerate(factors) if self._is_value(factor)]
        if len(values) != 1 or not upside[values[0]]:
            named = self.value or "the stream's value"
            self._refuse(f"{spark_sql(product)} is not {named} times a weight", "write SUM(weight * value)")
        value = factors[values[0]]
        rest = [(factor, up) for at, (factor, up) in enumerate(zip(factors, upside, strict=True)) if at != values[0]]
        for factor, _ in rest:
            for column in factor.find_all(exp.Column):
                if self._on_stream(column):
                    self._refuse(f"{spark_sql(column)} is the stream's, and no weight", "join a table of weights")
        text = "1.0D"
        for factor, up in rest:
            text += f" {'*' if up else '/'} ({self._unqualified(factor)})"
        return text, value.name

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
            self._refuse(f"whose column {column.name} is is not known", "write stream.column, or give --schema")
        return column.name.lower() in self.columns

    def _check_side(self, key: exp.Expr) -> None:
        joined = self._join()
        for column in key.find_all(exp.Column):
            same = joined is not None and column.name.lower() in (joined[0].lower(), joined[1].lower())
            if self.other is not None and self._on_stream(column) and not same:
                self._refuse(f"{spark_sql(column)} is the stream's", "group by columns of the table of weights")

    def _join(self) -> tuple[str, str] | None:
        """The table's column and the stream's that must be equal."""
        if self.other is None:
            return None
        joins = self.select.args.get("joins") or []
        if len(joins) != 1 or joins[0].side or (joins[0].kind or "INNER").upper() != "INNER":
            self._refuse("the weights are joined by a plain JOIN", "write FROM stream JOIN table USING (key)")
        using, on = joins[0].args.get("using"), joins[0].args.get("on")
        if using and len(using) == 1:
            return using[0].name, using[0].name
        if isinstance(on, exp.EQ) and isinstance(on.left, exp.Column) and isinstance(on.right, exp.Column):
            sides = {self._on_stream(on.left): on.left.name, self._on_stream(on.right): on.right.name}
            if len(sides) == 2:
                return sides[False], sides[True]
        return self._refuse("the join is not by one key", "write USING (key), or ON stream.key = table.key")

    def _filters(self) -> tuple[str | None, str | None]:
        where = self.select.args.get("where")
        if where is None:
            return None, None
        sides: dict[bool, list[str]] = {True: [], False: []}
        this = where.this
        for part in this.flatten() if isinstance(this, exp.And) else [this]:
            owners = {self._on_stream(column) for column in part.find_all(exp.Column)} or {True}
            if len(owners) > 1:
                self._refuse(f"{spark_sql(part)} mixes the stream and its weights", "compare one of them")
            sides[owners.pop()].append(f"({self._unqualified(part)})")
        return " AND ".join(sides[True]) or None, " AND ".join(sides[False]) or None

    def _unqualified(self, part: exp.Expr) -> str:
        copy = part.copy()
        for column in list(copy.find_all(exp.Column)):
            bare = exp.column(column.this.copy())
            if column is copy:
                return spark_sql(bare)
            column.replace(bare)
        return spark_sql(copy)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        at = self.query.text.upper().rfind("WITHIN")
        raise located(self.query.text, max(at, 0), "not-standing", problem, remedy, length=6 if at >= 0 else 1)


def _factors(part: exp.Expr, up: bool, factors: list[exp.Expr], upside: list[bool]) -> None:
    """The factors of a product, and which stand above the line."""
    if isinstance(part, exp.Paren):
        _factors(part.this, up, factors, upside)
    elif isinstance(part, exp.Mul | exp.Div):
        _factors(part.left, up, factors, upside)
        _factors(part.right, up == isinstance(part, exp.Mul), factors, upside)
    elif isinstance(part, exp.Neg):
        factors.append(exp.Literal.number(-1))
        upside.append(True)
        _factors(part.this, up, factors, upside)
    else:
        factors.append(part)
        upside.append(up)
