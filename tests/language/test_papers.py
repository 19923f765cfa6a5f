"""Every query of the five papers parses, plans, and prints to an equal query."""

from pathlib import Path

import pytest

from slackwater.control.disorder import make_method
from slackwater.language import Late, Measure, parse, parse_script, print_query
from slackwater.plan import make_plan

PAPERS = sorted((Path(__file__).parent / "papers").glob("*.sql"))


@pytest.mark.parametrize("file", PAPERS, ids=lambda file: file.stem)
def test_every_query_parses_plans_and_prints(file: Path) -> None:
    queries = parse_script(file.read_text(encoding="utf-8"))
    assert queries
    for query in queries:
        plan = make_plan(query)
        make_method(plan.method, plan.promise, **plan.method_options)  # raises if the method is unknown
        assert parse(print_query(query)) == query


def test_the_windows_of_kim_2007() -> None:
    first, second = (q.windows[0][1] for q in parse_script(PAPERS[0].read_text(encoding="utf-8")))
    assert first.range is not None and first.slide is not None and second.slack is not None
    assert (first.range.amount, first.slide.amount, first.attribute) == (300_000, 60_000, "timestamp")
    assert second.drop_ratio == 0.05
    assert (second.slack.amount, second.slack.measure) == (20, Measure.TUPLES)


def test_all_clauses_together() -> None:
    query = parse(
        "SELECT COUNT(*) FROM S [SLIDE 10 RANGE 20, WATTR id SOURCE host, `the channel`, ARRIVAL at "
        "SLACK 5 tuples, DRATIO 0.5% DELAY 250ms LATE PANES] WHERE v > 0 WITH ERROR WITHIN 2% CONFIDENCE 95%"
    )
    window = query.windows[0][1]
    assert window.sources == ("host", "the channel")
    assert window.arrival == "at"
    assert window.late is Late.PANES
    assert window.delay_ms == 250
    assert query.with_error and query.precision is not None and query.precision.relative
    assert parse(print_query(query)) == query


def test_brackets_of_arrays_and_maps_are_not_windows() -> None:
    query = parse("SELECT a[0], m['x'], m[source], EXTRACT(YEAR FROM ts[0]) FROM S [RANGE 5 WATTR id]")
    assert len(query.windows) == 1
    assert print_query(query) == "SELECT a[0], m['x'], m[source], EXTRACT(YEAR FROM ts[0]) FROM S [RANGE 5 WATTR id]"
