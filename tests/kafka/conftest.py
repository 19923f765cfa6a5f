"""A broker for the tests with Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.controllers import registered
from tests.helpers.kafka import Broker, jars_are_there


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if not jars_are_there():
        pytest.skip("there is no Kafka broker: make kafka downloads one")
    broker = Broker(tmp_path_factory.mktemp("kafka") / "broker")
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def known_controllers() -> Iterator[None]:
    """Make ``test-trailing`` known by name during a test."""
    with registered():
        yield
