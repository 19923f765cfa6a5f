"""Classes of Spark's types, one letter each, and which of them Spark's functions and operators take.

The classes are ``b`` boolean, ``i`` int, ``l`` bigint, ``c`` decimal, ``d`` double, ``s`` string, ``t`` timestamp,
``n`` timestamp without a time zone, ``e`` date, ``v`` interval of days, ``x`` binary, ``a`` array, ``m`` map and
``r`` struct; ``?`` is a type that is not known, and is never refused. ``scripts/spark_signatures.py`` asks Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlglot import exp

UNKNOWN = "?"
CONDITION = ("b", UNKNOWN)
NAMES = {
    "b": "boolean", "i": "int", "l": "bigint", "c": "decimal", "d": "double", "s": "string", "t": "timestamp",
    "n": "timestamp_ntz", "e": "date", "v": "interval", "x": "binary", "a": "array", "m": "map", "r": "struct",
}  # fmt: skip
_OF_TYPE = {
    exp.DType.BOOLEAN: "b", exp.DType.TINYINT: "i", exp.DType.SMALLINT: "i", exp.DType.INT: "i",
    exp.DType.BIGINT: "l", exp.DType.DECIMAL: "c", exp.DType.FLOAT: "d", exp.DType.DOUBLE: "d",
    exp.DType.TEXT: "s", exp.DType.VARCHAR: "s", exp.DType.CHAR: "s", exp.DType.TIMESTAMP: "t",
    exp.DType.TIMESTAMPTZ: "t", exp.DType.TIMESTAMPLTZ: "t", exp.DType.TIMESTAMPNTZ: "n", exp.DType.DATE: "e",
    exp.DType.BINARY: "x", exp.DType.ARRAY: "a", exp.DType.MAP: "m", exp.DType.STRUCT: "r",
}  # fmt: skip
_TABLE = Path(__file__).with_name("spark_signatures.txt")


class StructClass(str):
    """The class ``r`` with the classes of the fields by their names in lower case; None if they are not known."""

    fields: Mapping[str, str]

    def __new__(cls, fields: Mapping[str, str]) -> StructClass:
        """Make the class of a struct."""
        made = super().__new__(cls, "r")
        made.fields = {name.lower(): letter for name, letter in fields.items()}
        return made


@dataclass(frozen=True, slots=True)
class Signature:
    """What a call takes: per argument the accepted classes (``*``: any), and the class of its result.

    The result is one class, or pairs of the first argument's class and the result's.
    """

    accepted: tuple[str, ...]
    result: str

    def result_of(self, classes: list[str]) -> str:
        """The class of the call's result."""
        if len(self.result) == 1:
            return self.result
        pairs = dict(zip(self.result[::2], self.result[1::2], strict=True))
        return pairs.get(classes[0], UNKNOWN)


def class_of_type(kind: exp.DataType | None) -> str:
    """The class of a type.

    >>> class_of_type(exp.DataType.build("BIGINT")), class_of_type(None)
    ('l', '?')
    """
    if kind is not None and kind.this == exp.DType.STRUCT:
        named = [field for field in kind.expressions if isinstance(field, exp.ColumnDef)]
        if len(named) == len(kind.expressions):
            return StructClass({field.name: class_of_type(field.kind) for field in named})
    return UNKNOWN if kind is None else _OF_TYPE.get(kind.this, UNKNOWN)


def names_of(classes: str) -> str:
    """The names of classes, for an error.

    >>> names_of("il"), names_of("t")
    ('int or bigint', 'timestamp')
    """
    names = [NAMES[letter] for letter in classes if letter in NAMES]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@cache
def _lines() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split(" ")) for line in _TABLE.read_text(encoding="utf-8").splitlines())


@cache
def signatures(name: str) -> dict[int, Signature]:
    """The signatures of a function by the number of arguments; none if nothing is known about it.

    >>> signatures("sum")[1].accepted
    ('ilcdstv',)
    """
    return {int(f[1]): Signature(f[2:-1], f[-1]) for f in _lines() if f[0] == name and f[1].isdigit()}


@cache
def _pairs(operator: str) -> dict[str, str]:
    return {f[1]: f[2] for f in _lines() if f[0] == operator and not f[1].isdigit()}


def pair(operator: str, left: str, right: str) -> str | None:
    """The class of ``left operator right``; None if Spark refuses it. ``case`` joins two branches of one CASE.

    >>> pair("+", "i", "l"), pair("+", "b", "i"), pair("case", "i", "d")
    ('l', None, 'd')
    """
    if UNKNOWN in (left, right) or not _pairs(operator):
        return UNKNOWN
    found = _pairs(operator).get(left, "")
    return dict(zip(found[::2], found[1::2], strict=False)).get(right)


@cache
def most_arguments() -> int:
    """The largest number of arguments that the table has; a function that takes so many may take more."""
    return max(int(f[1]) for f in _lines() if f[1].isdigit())
