"""Optional dependencies: which extra brings a module, and the error that names a missing one."""

from __future__ import annotations

import importlib.util

from slackwater.errors import MissingRequirement

EXTRAS = {
    "click": "cli",
    "rich": "cli",
    "bokeh": "watch",
    "tornado": "watch",
    "prometheus_client": "watch",
    "matplotlib": "lab",
}
"""The extra that installs each optional module, as in ``pip install 'slackwater[watch]'``."""


def installed(module: str) -> bool:
    """Whether ``module`` can be imported. It is not imported here."""
    return importlib.util.find_spec(module) is not None


def require(*modules: str, purpose: str) -> None:
    """Raise ``MissingRequirement`` if one of the optional ``modules`` is not installed.

    ``purpose`` is the subject of the error text: "the live page".
    """
    for module in modules:
        if not installed(module):
            raise MissingRequirement(
                "missing-extra",
                f"{purpose} needs {module}, which is not installed",
                f"pip install 'slackwater[{EXTRAS[module]}]'",
            )
