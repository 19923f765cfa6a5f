"""Random queries over random streams cut at random: the streaming result equals the batch result."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from slackwater.control.disorder import registry

pytestmark = pytest.mark.spark
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "equality.py"
ROWS = 160


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The module ``benchmarks/equality.py``, with its queries and its comparison."""
    spec = importlib.util.spec_from_file_location("bench_equality", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    registry._METHODS.unregister(module.Trailing.name)


def draw_case(draw: Any, bench: Any) -> Any:
    """A query of any kind and length over one of the shapes; with a short wait some rows are late."""
    kind = draw(st.sampled_from(["sliding", "numbered", "per_row", "tuples", "landmark"]))
    slide = draw(st.integers(1, 6))
    length = slide + draw(st.integers(0, 9))
    wait = draw(st.sampled_from([0.5, 3.0, 20.0]))
    keyed = draw(st.booleans())
    pair = tuple(draw(st.lists(st.sampled_from(bench.ORDERED_AGGREGATES), min_size=2, max_size=2)))
    shape = draw(st.integers(0, len(bench.SHAPES) - 1))
    chosen = draw(st.sampled_from(bench.MERGEABLE))
    if kind == "sliding":
        return bench.sliding("Drawn", length, slide, shape, chosen, wait)
    if kind == "numbered":
        # the comparison assumes that SLIDE divides the origin of numbers
        return bench.numbered("Drawn", 10 * length, 10 if slide < 4 else 20, shape, chosen, 3 * wait)
    if kind == "per_row":
        return bench.per_row("Drawn", length, keyed, pair, wait)
    if kind == "tuples":
        return bench.tuples("Drawn", length, slide, keyed, pair, 3 * wait)
    return bench.landmark("Drawn", "2023-11-14 22:13:24", 2, pair, wait)


@pytest.mark.full
@settings(
    max_examples=4,
    phases=[Phase.generate],  # a run takes seconds, so a failure is not shrunk
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_a_drawn_query_equals_its_batch(spark: SparkSession, bench: Any, data: Any) -> None:
    case = draw_case(data.draw, bench)
    stream = bench.generated(ROWS, seed=data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.sets(st.integers(30, ROWS - 30), min_size=2, max_size=3)))
    bench.name_sensors(spark, [stream])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        root = Path(scratch)
        files = bench.write_files(stream, root / "files", cuts)
        outcome = bench.run(spark, case, files, root / "case", f"Drawn_{root.name.replace('-', '_')}")
        assert outcome.equal, (case.text, cuts)


def test_the_comparison_finds_differences(spark: SparkSession, bench: Any) -> None:
    """The comparison finds a missing row, a repeated row and a wrong digit."""
    one = spark.createDataFrame([(1, 1.0), (2, 2.0)], "k int, v double")
    assert bench.same(one, one.orderBy("v", ascending=False))
    for other in ([(1, 1.0)], [(1, 1.0), (2, 2.0), (2, 2.0)], [(1, 1.0), (2, 2.00001)], [(1, 1.0), (3, 2.0)]):
        assert not bench.same(one, spark.createDataFrame(other, one.schema))
