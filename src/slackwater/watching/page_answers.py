"""The answers at the top of the live page: how old results are, what is lost and where, and why."""

from __future__ import annotations

from slackwater.units import duration_text, percent
from slackwater.watching.age import arrival_clock_ms, is_recorded, recent_publication_delays_ms
from slackwater.watching.meanings import meaning_of
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import Series
from slackwater.watching.verdict import wait_text

_NAMED_SOURCES = 3


def questions_of(series: Series) -> tuple[str, str, str, str]:
    """The questions that the sections of the page answer, in the order of a reader."""
    why = {
        "completeness": "Why this wait?",
        "timeliness": "Why this shed ratio?",
        "precision": "Why these evaluations?",
    }
    return "Is it kept?", "How old are results?", "What is lost, and where?", why[series.about.kind]


def answers_of(series: Series) -> list[tuple[str, str]]:
    """The questions after the first one, each with its answer in a line."""
    _, age, loss, why = questions_of(series)
    return [(age, age_text(series)), (loss, loss_text(series)), (why, why_text(series))]


def age_text(series: Series) -> str:
    """How old results are when they are published, and how far the query is behind its source."""
    lag = None if series.last is None else series.last.source_lag_rows
    return _age(series) + ("" if lag is None else f"; {lag:,.0f} rows wait in the source")


def _age(series: Series) -> str:
    if series.about.kind == "timeliness":
        now_s, mean_s = series.latest("delay_s"), series.latest("mean_delay_s")
        if now_s is None or mean_s is None:
            return "not known yet"
        return f"{_seconds(now_s)} from arrival to commit in the last batch, {_seconds(mean_s)} on average"
    if series.about.kind == "precision":
        return "exact when given; each stands until its deadline" + _missed(series)
    wait_ms = series.latest("wait_ms")
    if wait_ms is None or series.last is None:
        return "nothing can be published before the first heartbeat"
    wait = f"{wait_text(series.about, wait_ms)} of waiting for late rows"
    delays_ms = [] if series.about.numeric_order else list(recent_publication_delays_ms(series))
    if not delays_ms:
        return f"at least {wait}"
    text = f"published {duration_text(delays_ms[-1])} after the end of their window"
    if len(delays_ms) > 1:
        text += f" ({duration_text(sum(delays_ms) / len(delays_ms))} on average in the last 5 min)"
    text += f", with {wait}"
    return text + (f"; by the clock of the recorded rows, {_ago(series)}" if is_recorded(series.last) else "")


def loss_text(series: Series) -> str:
    """How many rows were lost, by what, and at which sources."""
    if series.about.kind == "precision":
        counts = series.latest("precision") or PrecisionCounts()
        lost = [f"{counts.out_of_order:,} rows out of order"] if counts.out_of_order else []
        lost += [f"{counts.invalid:,} rows invalid"] if counts.invalid else []
        lost += [f"{counts.withheld:,} queries without an answer"] if counts.withheld else []
        return ", ".join(lost) or "nothing so far"
    ledger = series.ledger
    lost = [f"{ledger.late:,} late ({percent(ledger.drop_ratio)})"] if ledger.late else []
    lost += [f"{ledger.shed:,} shed ({percent(ledger.shed / ledger.input)})"] if ledger.shed else []
    lost += [f"{ledger.invalid:,} invalid"] if ledger.invalid else []
    if not lost:
        return "nothing so far"
    text = f"{', '.join(lost)} of {ledger.input:,} rows"
    most = sorted(series.losses.items(), key=lambda item: -(item[1].late + item[1].invalid))[:_NAMED_SOURCES]
    if most:
        text += "; most at " + ", ".join(f"{name} ({loss.late + loss.invalid:,})" for name, loss in most)
    return text


def why_text(series: Series) -> str:
    """The cause of the latest decision and what it means."""
    if not series.decisions:
        return "the method is still learning"
    cause = series.decisions[-1].cause
    meaning = meaning_of(cause)
    return f"{cause}: {meaning}" if meaning else cause


def _missed(series: Series) -> str:
    counts = series.latest("precision")
    return f"; {counts.missed:,} deadlines missed" if counts is not None and counts.missed else ""


def _ago(series: Series) -> str:
    last = series.last
    clock_ms = None if last is None else arrival_clock_ms(last)
    return "" if last is None or clock_ms is None else f"which arrived {duration_text(last.at_ms - clock_ms)} ago"


def _seconds(seconds: float) -> str:
    return duration_text(seconds * 1e3)
