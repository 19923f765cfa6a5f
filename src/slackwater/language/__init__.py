"""The query language: Spark SQL plus a window clause in brackets after the stream.

Each step of the pipeline is one file:

1. ``trailing_clauses`` and ``brackets`` separate our clauses from Spark's tokens.
2. ``clause_lexer`` and ``clause`` parse a bracket clause.
3. ``parser`` parses the rest with the Spark SQL of ``dialect``.
4. ``safety`` and ``roundtrip_check`` refuse queries that could run code or that would reach Spark changed.
5. ``tree`` holds the result, and ``printer`` turns it back into text.

``text_errors`` makes the errors, which point at the character that is wrong.
"""

from slackwater.language.dialect import spark_sql
from slackwater.language.parser import parse, parse_script
from slackwater.language.printer import print_clause, print_query
from slackwater.language.safety import CODE_FUNCTIONS, refuse_code
from slackwater.language.tree import (
    Extent,
    Late,
    Measure,
    Precision,
    Query,
    UsingOption,
    Window,
)

__all__ = [
    "CODE_FUNCTIONS",
    "Extent",
    "Late",
    "Measure",
    "Precision",
    "Query",
    "UsingOption",
    "Window",
    "parse",
    "parse_script",
    "print_clause",
    "print_query",
    "refuse_code",
    "spark_sql",
]
