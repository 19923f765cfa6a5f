"""Keys as one text, whatever and however many they are: JSON that is read back as the very same values."""

from __future__ import annotations

from slackwater.names import literal

# Spark's own formats cut times to milliseconds, and local times of long ago have offsets of seconds.
OPTIONS = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def as_json(struct: str) -> str:
    """Spark SQL that makes a text of a struct."""
    return f"to_json({struct}, {_map({'ignoreNullFields': 'false', **OPTIONS})})"


def from_json(text: str, schema: str) -> str:
    """Spark SQL that reads it back."""
    return f"from_json({text}, {literal(schema)}, {_map(OPTIONS)})"


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(literal(word) for pair in options.items() for word in pair)})"
