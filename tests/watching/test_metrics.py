"""Prometheus can read the metrics, and the dashboard shows exactly those."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from slackwater.errors import MissingRequirement
from slackwater.watching.metrics import MEASURES, metric_names
from slackwater.watching.metrics_server import MetricsServer, SeriesCollector
from slackwater.watching.series import Series
from tests.helpers.series import DELAY, RATIO, STANDING, delay_point, ratio_point, ratio_series, standing_point

ROOT = Path(__file__).resolve().parents[2]


def everything() -> list[Series]:
    delay = Series(DELAY)
    delay.add(delay_point(0, shed_ratio=0.25))
    standing = Series(STANDING)
    standing.add(standing_point(0))
    sources = Series(dataclasses.replace(RATIO, promise="by-source"))
    sources.add(dataclasses.replace(ratio_point(0), sources=(("17", 400, 2500.0),)))
    return [ratio_series(4), delay, standing, sources]


def test_the_endpoint_serves_the_values_of_the_series() -> None:
    served = MetricsServer(everything, 0)
    try:
        with urllib.request.urlopen(served.url) as answer:
            text = answer.read().decode()
        with pytest.raises(MissingRequirement, match="port-taken"):
            MetricsServer(everything, served.port)
    finally:
        served.close()
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    of = frozenset({("promise", "sensors"), ("query", "peaks")})
    assert samples["slackwater_drop_ratio", of] == 0.005
    assert samples["slackwater_promised_drop_ratio", of] == 0.01
    assert samples["slackwater_promise_kept", of] == 1.0
    assert samples["slackwater_wait_seconds", of] == 4.0
    assert samples["slackwater_rows_total", of | {("fate", "late")}] == 20
    assert samples["slackwater_lateness_seconds", of | {("quantile", "1")}] == 8.0
    assert samples["slackwater_run_lateness_seconds", of | {("quantile", "1")}] == 8.5
    assert samples["slackwater_behind_seconds", of | {("quantile", "1")}] == 9.0
    assert samples["slackwater_batch_span_seconds", of] == 0.5
    assert samples["slackwater_shed_ratio", frozenset({("promise", "delay-1"), ("query", "peaks")})] == 0.25
    confidence = frozenset({("promise", "portfolios"), ("query", "peaks")})
    assert samples["slackwater_standing_evaluated_total", confidence] == 100
    assert samples["slackwater_standing_deferred_total", confidence] == 890
    assert samples["slackwater_fidelity_ratio", confidence] == 0.975
    assert {name for name, _ in samples} == set(metric_names()), "every metric appears under its own name"


def test_names_and_units_follow_the_conventions() -> None:
    assert len({m.name for m in MEASURES}) == len(MEASURES)
    for measure in MEASURES:
        assert re.fullmatch(r"slackwater_[a-z]+(_[a-z]+)*", measure.name)
        assert not re.search(r"_(ms|us|millis|percent)\b", measure.name), "base units only"
        assert measure.help and not measure.help.endswith(".")


def test_a_query_that_ended_has_no_metrics() -> None:
    series = ratio_series(3)
    series.end("stopped")
    registry = CollectorRegistry()
    registry.register(SeriesCollector(lambda: [series]))
    assert registry.get_sample_value("slackwater_drop_ratio", {"query": "peaks", "promise": "sensors"}) is None


def test_the_dashboard_shows_exactly_the_metrics() -> None:
    dashboard = json.loads((ROOT / "grafana" / "slackwater.json").read_text())
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    texts += [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    used = {name for text in texts for name in re.findall(r"slackwater_\w+", text)}
    assert used == set(metric_names())
