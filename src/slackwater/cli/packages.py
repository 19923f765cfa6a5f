"""``--package``: the option of the verbs that start Spark."""

from __future__ import annotations

import click

package_option = click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="GROUP:ARTIFACT:VERSION|JAR",
    help="Maven package or jar that Spark loads before it starts, such as its Kafka connector. Repeatable.",
)
