"""The group of a row as one number or one text, as the window operator takes it."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.plan import Plan
from slackwater.spark.runtime.json_key import as_json, from_json

_NULL_NUMBER = "(-9223372036854775807L - 1L)"  # stands for null among integers


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Spark SQL that encodes the group keys of a row as the column ``key``, and decodes them from it.

    :param encode: one expression over the row.
    :param decode: one expression over ``key`` for each group key.
    :param is_integer: whether ``key`` is a number; else it is a text.
    """

    encode: str
    decode: tuple[str, ...]
    is_integer: bool = False


def group_key(plan: Plan, types: list[str]) -> GroupKey:
    """One integer or one text is used as it is, which costs almost nothing per row; anything else becomes JSON."""
    shape = plan.shape
    assert shape is not None
    if not types:
        return GroupKey("0L", (), is_integer=True)
    if len(types) == 1 and types[0] == "string":
        return GroupKey(f"({shape.keys[0]})", ("key",))
    if len(types) == 1 and types[0] in ("bigint", "int", "smallint", "tinyint"):
        return GroupKey(
            f"COALESCE(CAST({shape.keys[0]} AS BIGINT), {_NULL_NUMBER})",
            (f"CAST(NULLIF(key, {_NULL_NUMBER}) AS {types[0]})",),
            is_integer=True,
        )
    keys = ", ".join(f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True))
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(shape.key_names, types, strict=True))
    parsed = from_json("key", schema)
    return GroupKey(as_json(f"struct({keys})"), tuple(f"{parsed}.{name}" for name in shape.key_names))
