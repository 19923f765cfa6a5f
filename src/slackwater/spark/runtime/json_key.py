"""Group keys as one JSON text. Any number of keys of any type comes back unchanged."""

from __future__ import annotations

from slackwater.names import literal

# Spark's default formats cut timestamps to milliseconds. UTC avoids historical zone offsets with seconds.
OPTIONS = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def as_json(struct: str) -> str:
    """Spark SQL that turns a struct into text."""
    return f"to_json({struct}, {_map({'ignoreNullFields': 'false', **OPTIONS})})"


def from_json(text: str, schema: str) -> str:
    """Spark SQL that turns the text back into a struct of the given schema."""
    return f"from_json({text}, {literal(schema)}, {_map(OPTIONS)})"


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(literal(word) for pair in options.items() for word in pair)})"
