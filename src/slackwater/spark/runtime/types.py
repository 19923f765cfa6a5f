"""Type names that Spark SQL can parse, whatever the fields in them are called."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from slackwater.names import quoted


def type_text(kind: DataType) -> str:
    """The Spark SQL text of a type, with quoted field names; ``simpleString`` does not quote them.

    >>> from pyspark.sql.types import LongType
    >>> type_text(StructType().add("a b", LongType()))
    'struct<`a b`: bigint>'
    """
    if isinstance(kind, StructType):
        fields = ", ".join(f"{quoted(field.name)}: {type_text(field.dataType)}" for field in kind.fields)
        return f"struct<{fields}>"
    if isinstance(kind, ArrayType):
        return f"array<{type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return str(kind.simpleString())
