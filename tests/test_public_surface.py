"""Every exported name exists and is documented."""

import importlib.metadata
import inspect
import re

import slackwater as sw
from tests.helpers.doc_blocks import ROOT


def test_every_exported_name_exists_and_has_a_docstring() -> None:
    assert dir(sw) == sorted(sw.__all__)
    for name in sw.__all__:
        exported = getattr(sw, name)
        assert name == "__version__" or inspect.getdoc(exported), name


def test_every_exported_name_is_tried_in_spark_connect() -> None:
    """Types of errors and the version have nothing to do with the session."""
    used = re.findall(r"\bsw\.(\w+)", (ROOT / "tests" / "helpers" / "connect_usages.py").read_text())
    types = {name for name in sw.__all__ if inspect.isclass(getattr(sw, name))}
    errors = {name for name in types if issubclass(getattr(sw, name), Exception)}
    assert set(sw.__all__) - errors - {"__version__"} <= set(used)


def test_the_version_is_the_package_s() -> None:
    assert sw.__version__ == importlib.metadata.version("slackwater")
