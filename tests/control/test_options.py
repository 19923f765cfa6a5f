"""Every option of every registered method and law changes a decision, or is refused."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from slackwater.control.disorder import Batch, make_method, method_names, refuse_unused
from slackwater.control.disorder.registry import _METHODS
from slackwater.control.registry import Registry
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import _LAWS, law_names, make_law
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

OTHER: dict[str, dict[str, Any]] = {
    "ad-hoc": {"theta": "over", "most_rows": 130},
    "adaptive-max-delay": {"interval_rows": 7},
    "budgeted-quantile": {"horizons": (3.0, 9.0), "margin": 0.5},
    "fixed-slack": {"slack_rows": 3},
    "mean-distance": {
        "window_rows": 300,
        "period_ms": 100.0,
        "period_rows": 500,
        "forward_ratio": 0.3,
        "back_ratio": 0.5,
    },
    "normal": {
        "estimate_every": 100,
        "sample_every": 40,
        "samples": 500,
        "equation": 11,
        "reservoir": True,
        "seed": 5,
        "fallback": False,
    },
    "ring-quantile": {"ring_rows": 300, "least_rows": 30},
    "source-heartbeat": {"hold_ms": 700.0},
    "vseq": {"most_rows": 40},
}
BESIDE = {("ad-hoc", "most_rows"): {"theta": "over"}}
"""Other options that an option needs to matter on this stream."""
LAWS: dict[str, dict[str, Any]] = {
    "ctrl": {"poles": (0.2, 0.2), "a": -0.5},
    "ctrl-batch": {"pole": 0.5},
    "ctrl-integrating": {"poles": (0.2, 0.2)},
}


def options_of(registry: Registry[Any], name: str) -> list[str]:
    """The options of a class; the first parameter of a method is its promise."""
    return [name for name in inspect.signature(registry.find(name)).parameters if name != "promise"]


def heartbeats(name: str, ratio: float, with_clock: bool, **options: Any) -> list[float]:
    """What a method proposes after each of 60 histograms of 100 rows, or after as many batches without a clock."""
    draw = np.random.default_rng(3)
    method = make_method(name, Completeness(ratio), **options)
    found = []
    for number in range(60):
        clock = 500.0 * (number + 1)
        values = clock - draw.uniform(0.0, 500.0, 100) - draw.exponential(200.0, 100)
        punctuations = np.array([clock - 400.0])
        batch = Batch(np.sort(values), punctuations=punctuations, late=20 * (number < 5))
        if with_clock:
            weights = np.ones(100, dtype=np.int64)
            batch = Batch(
                np.sort(values), weights=weights, clock=clock, punctuations=punctuations, late=20 * (number < 5)
            )
        method.observe(batch)
        found.append(method.heartbeat(clock if with_clock else None))
    return found


@pytest.mark.parametrize("name", method_names())
def test_every_option_of_a_method_changes_its_heartbeats(name: str) -> None:
    unused: frozenset[str] = getattr(_METHODS.find(name), "without_clock", frozenset())
    assert set(options_of(_METHODS, name)) == set(OTHER.get(name, {}))
    for option, value in OTHER.get(name, {}).items():
        ratio = 0.001 if option in ("fallback", "margin") else 0.05
        with_clock, beside = option not in unused, BESIDE.get((name, option), {})
        plain, changed = (heartbeats(name, ratio, with_clock, **beside, **o) for o in ({}, {option: value}))
        assert plain != changed, option
        if with_clock:
            refuse_unused(name, {option: value})
        else:
            assert heartbeats(name, ratio, True, **{option: value}) == heartbeats(name, ratio, True)
            with pytest.raises(InvalidOption, match=rf"\[option-not-used\] {option}="):
                refuse_unused(name, {option: value})


@pytest.mark.parametrize("name", method_names())
def test_a_cap_changes_every_method_or_is_refused(name: str) -> None:
    if name != "fixed-slack":
        assert heartbeats(name, 0.05, True, slack_rows=5) != heartbeats(name, 0.05, True)
        with pytest.raises(InvalidOption, match="invalid-slack"):
            make_method(name, Completeness(0.05), slack_rows=0)


@pytest.mark.parametrize("option", ["estimate_every", "sample_every", "samples", "equation", "reservoir", "seed"])
def test_options_of_the_normal_model_are_refused_where_it_does_not_run(option: str) -> None:
    value = {**OTHER["normal"], "sample_every": 20}[option]
    with pytest.raises(InvalidOption, match=rf"\[option-not-used\] {option}=.*add fallback=False"):
        make_method("normal", Completeness(0.001), **{option: value})


@pytest.mark.parametrize("name", law_names())
def test_every_option_of_a_law_changes_what_it_admits(name: str) -> None:
    assert set(options_of(_LAWS, name)) == set(LAWS.get(name, {}))

    def admitted(**options: Any) -> list[float]:
        law, backlog, found = make_law(name, **options), 0.0, []
        for number in range(20):
            arrived = 400.0 if number < 10 else 150.0
            found.append(law.admit_per_s(Status(1.0, 2.0, arrived, 190.0, backlog, cost_s=0.005, headroom=0.95)))
            backlog = max(0.0, backlog + min(arrived, max(found[-1], 0.0)) - 190.0)
        return found

    for option, value in LAWS.get(name, {}).items():
        assert admitted() != admitted(**{option: value}), option
