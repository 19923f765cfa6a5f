"""A series is bounded, remembers the whole run, and survives on disk what a crash may do to it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from slackwater.control.ledger import Ledger
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.watching.folders import SeriesFinder
from slackwater.watching.point import Point
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.report_html import report_html
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import MAX_POINTS, ResultRows, Series
from slackwater.watching.series_file import SeriesReader, SeriesWriter, series_path
from slackwater.watching.verdict import verdict
from tests.helpers.series import (
    DELAY,
    RATIO,
    STANDING,
    START_MS,
    delay_point,
    ratio_point,
    ratio_series,
    ratio_writer,
    standing_point,
)


def test_a_point_comes_back_from_json_as_it_was() -> None:
    for point in (ratio_point(3), delay_point(4, shed_ratio=0.2), standing_point(2)):
        assert Point.from_json(json.loads(json.dumps(point.as_json()))) == point


def test_it_stays_bounded_and_still_reaches_back_to_the_first_batch() -> None:
    series = ratio_series(20 * MAX_POINTS)
    assert len(series.points) <= MAX_POINTS
    assert series.batches == 20 * MAX_POINTS
    assert series.points[0].batch == 0
    assert series.points[-1].batch == 20 * MAX_POINTS - 1
    assert [p.batch for p in series.points[-MAX_POINTS // 2 :]] == list(range(19_500, 20_000)), "recent ones are whole"
    assert series.ledger.input == 20_000_000


def test_the_recent_ledger_covers_the_last_minutes_only() -> None:
    series = Series(RATIO)
    for batch in range(600):
        late = 0 if batch < 300 else 20
        before = series.ledger
        point = ratio_point(batch)
        series.add(dataclasses.replace(point, ledger=before + Ledger(on_time=1000 - late, late=late)))
    assert series.ledger.drop_ratio == pytest.approx(0.01)
    assert series.recent_ledger() == Ledger(on_time=300 * 980, late=300 * 20)


def test_the_verdict_has_a_word_an_amount_and_a_time() -> None:
    series = ratio_series(10, late=5)
    state = verdict(series)
    assert (state.tone, state.word, state.realised, state.margin) == (
        "good",
        "KEPT",
        "0.5% late",
        "50% of what was promised",
    )
    assert state.since_ms == START_MS
    series.add(dataclasses.replace(ratio_point(10), ledger=Ledger(on_time=900, late=100)))
    state = verdict(series)
    assert (state.word, state.margin, state.since_ms) == ("BROKEN", "10× what was promised", START_MS + 10_000)


def test_without_a_result_no_promise_is_kept_but_it_may_be_broken() -> None:
    series = Series(RATIO)
    series.add(dataclasses.replace(ratio_point(0), results=0))
    state = verdict(series)
    assert (state.tone, state.word, state.margin, series.kept) == ("open", "NOTHING PUBLISHED YET", "", None)
    series.add(ratio_point(1))
    assert verdict(series).word == "KEPT"
    broken = Series(RATIO)
    broken.add(dataclasses.replace(ratio_point(0, late=50), results=0))
    assert verdict(broken).word == "BROKEN"
    uncounted = Series(RATIO)
    uncounted.add(dataclasses.replace(ratio_point(0), results=None))
    assert verdict(uncounted).word == "KEPT", "the sink does not count its results"


def test_standing_queries_say_how_many_audits_and_what_became_of_their_rows() -> None:
    series = Series(STANDING)
    assert verdict(series).word == "NOTHING PUBLISHED YET"
    series.add(standing_point(9))
    assert verdict(series).realised == "within the bound 97.5% of the time by 100 audits"


def test_a_delay_is_judged_by_its_mean_over_the_run() -> None:
    series = Series(DELAY)
    assert verdict(series).word == "NOTHING PUBLISHED YET"
    series.add(delay_point(0, delay_s=1.5))
    assert verdict(series).word == "KEPT"
    series.add(delay_point(1, delay_s=2.5, shed_ratio=0.3))
    assert verdict(series).word == "BROKEN"
    assert [d.cause for d in series.decisions] == ["nothing shed", "shedding"]


def test_a_decision_is_added_when_the_cause_changes() -> None:
    series = Series(RATIO)
    for batch, cause in enumerate(["starting", "starting", "no rows", "quantile", "held: budget spent"]):
        series.add(ratio_point(batch, cause=cause))
    assert [(d.cause, d.batch, d.batches) for d in series.decisions] == [
        ("starting", 0, 2),
        ("quantile", 3, 1),
        ("held: budget spent", 4, 1),
    ]


def test_precision_is_judged_by_audits_once_there_are_enough() -> None:
    series = Series(STANDING)
    series.add(standing_point(0, within=0.8))
    assert verdict(series).word == "LEARNING", "80 evaluations are too few"
    series.add(standing_point(9, within=0.8))
    assert verdict(series).word == "BROKEN" and "80% of the time" in verdict(series).realised
    series.add(standing_point(10, within=0.95))
    assert verdict(series).word == "KEPT"
    assert "1,100 evaluated, 9,790 deferred" in "\n".join(series_lines(series))
    page = report_html([series])
    assert "CONFIDENCE 90%" in page and "1,100</b> evaluated" in page and "<svg" in page


def test_queries_of_shards_without_rows_count_as_deferred() -> None:
    counts = PrecisionCounts().after(ShardCounts(queries=10, withheld=2, evaluated=8), whole=True)
    assert (counts.queries, counts.deferred) == (10, 0)
    counts = counts.after(ShardCounts(queries=4, evaluated=3), whole=False)
    assert (counts.queries, counts.withheld, counts.evaluated, counts.deferred) == (10, 2, 11, 5)


def test_results_are_kept_newest_first_and_through_a_restart(tmp_path: Path) -> None:
    path = series_path(tmp_path, RATIO.query_id)
    writer = SeriesWriter(path, RATIO, next_batch=0)
    writer.add(ratio_point(0))
    for number in range(20):
        writer.add_results(ResultRows(("window", "n"), ((f"w{number}", "1"),)))
    again = SeriesWriter(path, RATIO, next_batch=1).series
    read = SeriesReader(path).read()
    assert read is not None and read.latest_results == again.latest_results == writer.series.latest_results
    assert [row[0] for row in read.latest_results.rows] == [f"w{number}" for number in range(19, 7, -1)]


def test_windows_and_late_panes_are_those_of_their_batch() -> None:
    series = ratio_series(3)
    assert [(c.results, c.late_panes) for c in series.closed] == [(20, 1)] * 3


def test_a_file_continues_an_earlier_run(tmp_path: Path) -> None:
    path = series_path(tmp_path, RATIO.query_id)
    whole = ratio_series(1200)
    first = SeriesWriter(path, RATIO, next_batch=0)
    for batch in range(700):
        first.add(ratio_point(batch))
    first.end("stopped")
    second = SeriesWriter(path, RATIO, next_batch=700)
    for batch in range(700, 1200):
        second.add(ratio_point(batch))
    read = SeriesReader(path).read()
    assert read is not None
    assert read.snapshot() == second.series.snapshot() == whole.snapshot()


def test_a_reader_follows_a_writer_through_its_rewrites(tmp_path: Path) -> None:
    path = series_path(tmp_path, RATIO.query_id)
    reader = SeriesReader(path)
    assert reader.read() is None
    writer = SeriesWriter(path, RATIO, next_batch=0)
    for batch in range(1100):
        writer.add(ratio_point(batch))
        if batch % 97 == 0:
            read = reader.read()
            assert read is not None and read.last == ratio_point(batch)
    writer.end("failed: no memory")
    read = reader.read()
    assert read is not None and read.ended == "failed: no memory"


def test_an_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    path = series_path(tmp_path, RATIO.query_id)
    writer = SeriesWriter(path, RATIO, next_batch=0)
    writer.add(ratio_point(0))
    with path.open("a") as file:
        file.write('{"point":{"at_ms":17000')
    read = SeriesReader(path).read()
    assert read is not None and read.batches == 1
    again = SeriesWriter(path, RATIO, next_batch=1)
    again.add(ratio_point(1))
    assert [p.batch for p in again.series.points] == [0, 1]


def test_a_new_checkpoint_starts_a_new_series(tmp_path: Path) -> None:
    path = series_path(tmp_path, RATIO.query_id)
    SeriesWriter(path, RATIO, next_batch=0).add(ratio_point(5))
    assert SeriesWriter(path, RATIO, next_batch=0).series.points == []


def test_series_are_found_below_locations_and_checkpoints(tmp_path: Path) -> None:
    for number, below in enumerate(("", "sensors", "check/_slackwater/sensors", "check/slackwater/other")):
        about = dataclasses.replace(RATIO, query_id=f"q{number}", query=f"query {number}")
        SeriesWriter(series_path(tmp_path / below, about.query_id), about, next_batch=0).add(ratio_point(0))
    finder = SeriesFinder(lambda: [tmp_path])
    assert [s.about.query for s in finder.find()] == ["query 0", "query 1", "query 2", "query 3"]
    assert [id(s) for s in finder.find()] == [id(s) for s in finder.find()], "unchanged files are not read again"


def test_the_report_as_text_json_and_html() -> None:
    series = ratio_series(10)
    text = "\n".join(series_lines(series))
    assert "0.5% of 10,000 rows late" in text
    assert "50% 60 ms, 90% 90 ms, 99% 800 ms, longest 8 s in the last 5 min" in text
    assert "50% 50 ms, 90% 80 ms, 99% 700 ms, longest 8.5 s over the run" in text
    assert "micro-batch 500 ms of arrivals in the last one" in text
    assert "decisions   22:13:20 quantile, wait 4 s" in text
    values = json.loads(json.dumps(series_json(series)))
    assert (values["lateness_ms"]["longest"], values["run_lateness_ms"]["longest"]) == (8000.0, 8500.0)
    assert values["last_batch"]["span_ms"] == 500.0 and values["last_batch"]["behind_ms"]["longest"] == 9000.0
    page = report_html([series])
    assert "KEPT" in page and "<svg" in page and "DRATIO 1%" in page
    assert "http" not in page.replace("http://www.w3.org/", "").replace("http://purl.org/", "").replace(
        "http://creativecommons.org/", ""
    ).replace("https://matplotlib.org/", "")


def test_names_from_outside_cannot_become_markup() -> None:
    series = ratio_series(3, about=dataclasses.replace(RATIO, query="<script>alert(1)</script>"))
    assert "<script>" not in report_html([series])


def test_queries_are_sorted_as_people_count(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        ratio_writer(tmp_path, number=number, batches=1)
    assert [s.about.query for s in SeriesFinder(lambda: [tmp_path]).find()] == ["peaks 1", "peaks 2", "peaks 10"]
