"""Every exported name exists and is documented."""

import importlib.metadata
import inspect

import slackwater as sw


def test_every_exported_name_exists_and_has_a_docstring() -> None:
    assert dir(sw) == sorted(sw.__all__)
    for name in sw.__all__:
        exported = getattr(sw, name)
        assert name == "__version__" or inspect.getdoc(exported), name


def test_the_version_is_the_package_s() -> None:
    assert sw.__version__ == importlib.metadata.version("slackwater")
