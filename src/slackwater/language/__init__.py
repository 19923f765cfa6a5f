"""The query language: Spark SQL, and a window in brackets behind the stream it reads.

The pipeline is visible, a file a step: ``text`` (positions and carets) → ``tail`` and ``brackets`` (what of a query is
ours) → ``lexer`` and ``clause`` (the bracket clause) → ``parser`` (the whole query, by the Spark SQL of ``dialect``) →
``safety`` and ``faithful`` (what is refused) → ``tree`` (what comes out) → ``printer`` (the text again).
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
    Window,
)

__all__ = [
    "CODE_FUNCTIONS",
    "Extent",
    "Late",
    "Measure",
    "Precision",
    "Query",
    "Window",
    "parse",
    "parse_script",
    "print_clause",
    "print_query",
    "refuse_code",
    "spark_sql",
]
