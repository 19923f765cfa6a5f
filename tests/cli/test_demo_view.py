"""The demo's table: it fits 80 columns by 24 lines, and says of each query only what its numbers say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group

from slackwater.cli.demo_view import WIDTH, Comparison, headline, notes, phase_at, progress_line, table
from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.command.comparison import Course, Outcome, Published, Span, course_of

SPANS = [Span("steady", 0, 40, 960.0), Span("drift", 40, 80, 5_100.0), Span("bursts", 80, 120, 3_300.0)]
NAMES = ("DRATIO 1%", "withWatermark('ts', '1 second')", "withWatermark('ts', '20 seconds')")
PROMISE = Completeness(0.01)


def course(*phases: tuple[float, float], rows: int = 400_000) -> Course:
    """A course from (lost ratio, age in seconds) of the first phases."""
    truth = {end: rows // 40 for span in SPANS for end in span.windows}
    published = {
        end: Published(truth[end] - round(truth[end] * lost_ratio), age_s * 1e3)
        for span, (lost_ratio, age_s) in zip(SPANS, phases, strict=False)
        for end in span.windows
    }
    return course_of(published, truth, SPANS)


def comparison(*courses: Course, late: int = 5_000, ended: bool = True) -> Comparison:
    ledger = Ledger(on_time=1_420_000 - late, late=late)
    return Comparison(PROMISE, ledger, SPANS, dict(zip(NAMES, courses, strict=False)), 0.9, ended)


def screen(shown: Comparison) -> list[str]:
    """What a terminal of 80 columns shows."""
    console = Console(width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(Group(headline(shown), "", *table(shown), *notes(shown)))
    return capture.get().splitlines()


GOOD = course((0.002, 2.1), (0.008, 6.4), (0.005, 4.2))
SHORT = course((0.003, 2.2), (0.17, 2.3), (0.08, 2.4))
LONG = course((0.0, 21.5), (0.0, 22.1), (0.0, 21.9))


def test_it_says_where_each_guess_fails() -> None:
    shown = comparison(GOOD, SHORT, LONG)
    lines = screen(shown)
    assert lines[0] == "KEPT: 0.35% of 1,420,000 rows late, 1% promised; both guesses failed."
    assert [shown.verdict(name) for name in NAMES] == [
        "kept",
        "too short: lost 17% in drift, 8% in bursts",
        "too long: 21.5 s old in steady, 2.1 s would do",
    ]
    lost = "rows lost 1,200 0.30% 68,000 17.0% 32,000 8.00% 101,200 8.43%"
    assert lost in [" ".join(line.split()) for line in lines]
    assert lines[-1].endswith("slackwater demo --watch")


def test_a_guess_between_fails_in_two_phases_and_a_lucky_one_in_none() -> None:
    between = course((0.0, 9.9), (0.09, 10.1), (0.0, 9.7))
    lucky = course((0.0, 3.0), (0.005, 7.0), (0.005, 5.0))
    shown = comparison(GOOD, between, lucky)
    assert shown.verdict(NAMES[1]) == "lost 9% in drift, 9.9 s old in steady"
    assert shown.verdict(NAMES[2]) == "neither too short nor too long"
    assert screen(shown)[0].endswith("1 of 2 guesses failed.")


def test_the_promise_hides_neither_a_bad_phase_nor_a_broken_total() -> None:
    bad_phase = course((0.0, 2.0), (0.025, 4.0), (0.0, 4.0))
    assert comparison(bad_phase, SHORT).verdict(NAMES[0]) == "kept; lost 2.5% in drift"
    broken = comparison(bad_phase, SHORT, late=30_000)
    assert broken.verdict(NAMES[0]) == "BROKEN; lost 2.5% in drift"
    assert screen(broken)[0].startswith("BROKEN: 2.11% of 1,420,000 rows late, 1% promised; ")
    # Where the promise itself lost too much, its age does not show that less waiting would do.
    assert LONG.too_old(bad_phase, PROMISE.drop_ratio) == ["steady", "bursts"]


def test_phases_that_are_not_reached_are_dashes() -> None:
    shown = comparison(course((0.0, 2.0)), course((0.01, 2.0)), course(), ended=False)
    lines = screen(shown)
    assert lines[0].startswith("kept so far: ")
    assert shown.verdict(NAMES[2]) == "nothing published yet"
    assert comparison(GOOD, course()).failed(course())
    assert sum(line.split()[-4:] == ["–"] * 4 for line in lines) == 2
    told = progress_line(shown, 41.0)
    assert told.startswith("41 s, drift: DRATIO 1% lost 0%, 2.0 s old; withWatermark('ts', '1 second') lost 1.00%")
    assert [phase_at(SPANS, at_s) for at_s in (0.0, 40.0, 119.9, 120.0)] == ["steady", "drift", "bursts", "end"]


def test_before_the_first_micro_batch_nothing_is_claimed() -> None:
    empty = Comparison(PROMISE, Ledger(), SPANS, dict(zip(NAMES, [course()] * 3, strict=True)), None, False)
    assert screen(empty)[0] == "waiting for the first micro-batch …"
    assert "took" not in "\n".join(screen(empty))


phases = st.tuples(st.floats(0, 1), st.floats(0, 10_000))


@given(st.lists(st.lists(phases, max_size=3), min_size=2, max_size=4), st.integers(1, 500_000), st.booleans())
def test_every_screen_fits_80_by_24(courses: list[list[tuple[float, float]]], per_s: int, ended: bool) -> None:
    names = (*NAMES, "withWatermark('ts', '1 minute 30 seconds')")
    shown = Comparison(
        PROMISE,
        Ledger(on_time=1 + per_s * 142, late=per_s),
        SPANS,
        {name: course(*each, rows=40 * per_s) for name, each in zip(names, courses, strict=False)},
        12.3,
        ended,
    )
    drawn = [line.plain for line in (headline(shown), *table(shown), *notes(shown))]
    assert max(map(len, drawn)) <= WIDTH
    assert len(drawn) + 1 <= 24


@pytest.mark.parametrize("outcome", [Outcome(0, 0, 0, None), Outcome(3, 30, 7, 12.5)])
def test_json_has_the_numbers_of_the_table(outcome: Outcome) -> None:
    values = outcome.as_json()
    assert values["lost_ratio"] == (outcome.lost / outcome.rows if outcome.rows else 0.0)
    assert {name: values[name] for name in ("windows", "rows", "lost", "age_ms")} == {
        "windows": outcome.windows,
        "rows": outcome.rows,
        "lost": outcome.lost,
        "age_ms": outcome.age_ms,
    }
