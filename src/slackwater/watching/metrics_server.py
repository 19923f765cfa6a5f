"""The endpoint that Prometheus scrapes. This module needs ``prometheus_client``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slackwater.errors import MissingRequirement
from slackwater.watching.metrics import LABELS, MEASURES
from slackwater.watching.series import Series


class SeriesCollector(Collector):
    """Reads the series at every scrape."""

    def __init__(self, find: Callable[[], Sequence[Series]]) -> None:
        self._find = find
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """All metrics of all running queries."""
        with self._lock:
            # if two queries have the same name, the one that reported last wins
            by_report = sorted((s for s in self._find() if s.ended is None), key=lambda s: s.seen_ms)
            running = {(series.about.query, series.about.promise): series for series in by_report}.values()
            for measure in MEASURES:
                labels = [*LABELS, *([measure.label] if measure.label else [])]
                family: GaugeMetricFamily | CounterMetricFamily
                if measure.kind == "counter":
                    family = CounterMetricFamily(measure.name, measure.help, labels=labels)
                else:
                    family = GaugeMetricFamily(measure.name, measure.help, labels=labels)
                for series in running:
                    for label_values, value in measure.read(series):
                        family.add_metric([series.about.query, series.about.promise, *label_values], value)
                yield family


class MetricsServer:
    """A metrics endpoint in its own thread, until ``close()``."""

    def __init__(self, find: Callable[[], Sequence[Series]], port: int, host: str = "127.0.0.1") -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SeriesCollector(find))
        self._server: WSGIServer
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise MissingRequirement(
                "port-taken", f"cannot listen on {host}:{port} ({error.strerror})", "choose another port, or 0 for any"
            ) from error
        self.host, self.port = host, int(self._server.server_port)

    @property
    def url(self) -> str:
        """The address to scrape."""
        return f"http://{self.host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
