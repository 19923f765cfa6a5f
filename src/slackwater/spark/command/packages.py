"""``--package``: what Spark loads before it starts, such as a connector."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slackwater.errors import InvalidData, InvalidOption, MissingRequirement

_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
_TELLING = re.compile(r"unresolved dependency|not found|download failed|Exception", re.IGNORECASE)


def package_settings(packages: Sequence[str]) -> dict[str, str]:
    """Spark's settings for the texts of ``--package``: Maven coordinates and jar files.

    >>> package_settings(["org.example:one_2.13:1.0", "org.example:two:2.0"])
    {'spark.jars.packages': 'org.example:one_2.13:1.0,org.example:two:2.0'}
    """
    jars = [text for text in packages if text.endswith(".jar")]
    coordinates = [text for text in packages if not text.endswith(".jar")]
    for jar in jars:
        if not Path(jar).is_file():
            raise InvalidData("no-such-file", f"--package {jar} is not a file", "name a jar, or give Maven coordinates")
    for text in coordinates:
        if not _COORDINATES.fullmatch(text):
            raise InvalidOption(
                "wrong-package",
                f"--package {text} is neither a jar file nor Maven coordinates",
                "write GROUP:ARTIFACT:VERSION",
            )
    settings = {"spark.jars": ",".join(jars), "spark.jars.packages": ",".join(coordinates)}
    return {name: value for name, value in settings.items() if value}


def not_started(packages: Sequence[str], output: str) -> MissingRequirement:
    """The error of a Spark that did not start with these packages; ``output`` is what it printed."""
    lines = [line.strip(" :\t!") for line in output.splitlines() if _TELLING.search(line)]
    reason = f" ({lines[0]})" if lines else ""
    return MissingRequirement(
        "no-package",
        f"Spark cannot start with --package {' --package '.join(packages)}{reason}",
        "check the coordinates and the connection to the package registry",
    )
