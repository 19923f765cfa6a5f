"""Fixtures of the tests on real Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.controllers import registered


@pytest.fixture(scope="module")
def known_controllers() -> Iterator[None]:
    """Make ``test-trailing`` and ``test-scripted`` known by name while the tests of a module run."""
    with registered():
        yield
