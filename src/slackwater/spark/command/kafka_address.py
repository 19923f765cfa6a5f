"""``kafka://host:port/topic?name=value``: the address of Kafka topics on the command line."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from slackwater.errors import InvalidData, InvalidOption

SCHEME = "kafka:"
_SERVER = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}")
_TOPIC = re.compile(r"[\w.-]{1,249}", re.ASCII)
_CLIENT_PREFIX = "kafka."
_SET_BY_ADDRESS = "kafka.bootstrap.servers"
_CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Brokers, topics, and the parameters after the question mark; ``option`` is where the address was given."""

    option: str
    servers: tuple[str, ...]
    topics: tuple[str, ...]
    parameters: dict[str, str]

    @classmethod
    def parse(cls, option: str, text: str) -> KafkaAddress:
        """An address from the text of ``option``.

        >>> address = KafkaAddress.parse("--source", "kafka://one:9092,two:9092/clicks,views?format=json")
        >>> address.servers, address.topics, address.parameters
        (('one:9092', 'two:9092'), ('clicks', 'views'), {'format': 'json'})
        """

        def wrong(problem: str) -> InvalidOption:
            remedy = "write kafka://HOST:PORT/TOPIC?name=value&name=value, with other brokers and topics after commas"
            return InvalidOption("wrong-address", f"{option} {text.partition('?')[0]}: {problem}", remedy)

        try:
            url = urlsplit(text, allow_fragments=False)
            pairs = parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query))
        except ValueError as error:
            raise wrong(f"{error}") from None
        servers, topics = tuple(url.netloc.split(",")), tuple(url.path.removeprefix("/").split(","))
        for server in servers:
            if not _SERVER.fullmatch(server):
                raise wrong(f"{server or 'nothing'} is not HOST:PORT of a broker")
        for topic in topics:
            if not _TOPIC.fullmatch(topic):
                raise wrong(f"{topic or 'nothing'} is not the name of a topic")
        parameters = dict(pairs)
        for name, value in pairs:
            if parameters[name] != value:
                raise wrong(f"{name} is given twice")
        return cls(option, servers, topics, parameters)

    @property
    def place(self) -> str:
        """The address without its parameters, which may hold a password."""
        return f"kafka://{','.join(self.servers)}/{','.join(self.topics)}"

    def spark_options(self, known: frozenset[str], own: frozenset[str]) -> dict[str, str]:
        """The parameters that are options of Spark's connector; refuses one that is neither ``known`` nor ``own``.

        Spark itself ignores an option that it does not know. Options that begin with ``kafka.`` are those of Kafka's
        client, and are passed on unchecked.
        """
        by_lower = {name.lower(): name for name in known}
        options = {_SET_BY_ADDRESS: ",".join(self.servers)}
        for name, value in self.parameters.items():
            if name.startswith(_CLIENT_PREFIX) and name != _SET_BY_ADDRESS:
                options[name] = value
            elif name.lower() in by_lower:
                options[by_lower[name.lower()]] = value
            elif name not in own:
                raise InvalidOption(
                    "unknown-parameter",
                    f"{self.option} {self.place}: unknown parameter {name}",
                    f"use one of {', '.join(sorted(own | known))}, or an option of Kafka's client as kafka.NAME",
                )
        return options

    def check_reachable(self) -> None:
        """Raise unless a broker accepts a connection. Spark itself would wait for a minute and more."""
        failures: list[OSError] = []
        for server in self.servers:
            host, _, port = server.rpartition(":")
            try:
                with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S):
                    return
            except (OSError, OverflowError) as error:
                failures.append(error if isinstance(error, OSError) else OSError(str(error)))
        raise InvalidData(
            "no-broker",
            f"{self.option}: no connection to {', '.join(self.servers)} ({failures[-1]})",
            "start the broker, or correct host and port",
        )

    def refusal(self, condition: str, problem: str, remedy: str) -> InvalidOption:
        """An error about a parameter of this address."""
        return InvalidOption(condition, f"{self.option} {self.place}: {problem}", remedy)


def is_kafka(text: str) -> bool:
    """Whether the text of an option means Kafka."""
    return text.startswith(SCHEME)
