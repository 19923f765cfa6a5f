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
    """Reads the series whenever Prometheus asks."""

    def __init__(self, look: Callable[[], Sequence[Series]]) -> None:
        self._look = look
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Every metric of every running query."""
        with self._lock:
            # of two queries of one name, one metric: that of the one heard of last
            heard = sorted((s for s in self._look() if s.ended is None), key=lambda s: s.seen_ms)
            running = {(series.about.query, series.about.promise): series for series in heard}.values()
            for measure in MEASURES:
                labels = [*LABELS, *([measure.label] if measure.label else [])]
                family: GaugeMetricFamily | CounterMetricFamily
                if measure.kind == "counter":
                    family = CounterMetricFamily(measure.name, measure.help, labels=labels)
                else:
                    family = GaugeMetricFamily(measure.name, measure.help, labels=labels)
                for series in running:
                    for further, value in measure.read(series):
                        family.add_metric([series.about.query, series.about.promise, *further], value)
                yield family


class MetricsServer:
    """An endpoint that Prometheus can scrape, in a thread of its own, until it is closed."""

    def __init__(self, look: Callable[[], Sequence[Series]], port: int, host: str = "127.0.0.1") -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SeriesCollector(look))
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
        """What to give to Prometheus."""
        return f"http://{self.host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
