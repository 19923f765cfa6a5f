"""The live page in a real browser, over series as the listener writes them."""

from __future__ import annotations

import asyncio
import dataclasses
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from slackwater.control.ledger import Ledger
from slackwater.errors import MissingRequirement
from slackwater.watching.page_server import PageServer
from slackwater.watching.series import ResultRows
from slackwater.watching.series_file import SeriesWriter, series_path
from tests.helpers.browser import Browser, new_browser
from tests.helpers.series import DELAY, RATIO, STANDING, delay_point, ratio_point, ratio_writer, standing_point


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with new_browser() as opened:
        yield opened


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServer]:
    served = PageServer(lambda: [tmp_path], port=0)
    yield served
    served.close()


def word(browser: Browser) -> str:
    return " ".join(browser.texts(".headline .word"))


def rows(browser: Browser) -> str:
    return browser.texts(".fates dd")[0]


def marks(browser: Browser) -> list[str]:
    """The causes that are written into a chart."""
    script = """
      const column = m => m.data instanceof Map ? m.data.get('cause') : m.data && m.data.cause;
      return [...Bokeh.documents[0]._all_models.values()].flatMap(m => [...(column(m) ?? [])]);
    """
    return list(browser.driver.execute_script(script))


def scheme(browser: Browser) -> str:
    return str(browser.driver.execute_script("return Bokeh.documents[0].get_model_by_name('scheme').value"))


@pytest.mark.full
def test_the_empty_page_says_what_to_do_and_fills_by_itself(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    browser.open(page.url)
    browser.until(lambda: browser.find(".empty"), "the empty state")
    text = browser.texts(".empty")[0]
    assert "slackwater demo" in text and "with_drop_ratio" in text and str(tmp_path) in text
    ratio_writer(tmp_path, batches=5)
    browser.until(lambda: word(browser) == "✓ KEPT", "the first query, without a reload")
    assert not browser.find(".empty")
    assert browser.complaints() == []


@pytest.mark.full
def test_everything_is_there_and_updates_by_itself(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    writer = ratio_writer(tmp_path, batches=30)
    browser.open(page.url)
    browser.until(lambda: len(browser.find("canvas")) >= 6, "the charts")
    assert browser.texts(".headline .promised") == ["DRATIO 1%"]
    facts = browser.texts(".headline .facts")[0]
    assert "0.5% late" in facts and "50% of what was promised" in facts and "since 22:13:20" in facts
    assert rows(browser) == "30,000"
    assert browser.texts(".card .word") == ["✓ KEPT"]
    tables = "\n".join(browser.texts("table"))
    assert "quantile, wait 4 s" in tables
    assert "late panes" in tables and "22:13:43–22:13:44" in tables
    asked = ["How old are results?", "What is lost, and where?", "Why this wait?"]
    assert browser.texts(".answers dt") == asked and browser.texts("h2") == ["Is it kept?", *asked]
    assert "published 5 s after the end of their window" in browser.texts(".answers dd")[0]
    assert marks(browser) == []
    writer.add(ratio_point(30, cause="held: budget spent"))
    browser.until(lambda: rows(browser) == "31,000", "one more micro-batch")
    browser.until(lambda: "held: budget spent" in "\n".join(browser.texts("table")), "the decision")
    browser.until(lambda: marks(browser) == ["held: budget spent"], "a mark where the cause changed")
    writer.add(dataclasses.replace(ratio_point(31), ledger=Ledger(on_time=30_000, late=2_000)))
    browser.until(lambda: word(browser) == "✗ BROKEN", "a broken promise, in a word")
    assert browser.find(".headline.bad") and browser.texts(".card .word") == ["✗ BROKEN"]
    assert "6.25× what was promised" in browser.texts(".headline .facts")[0]
    writer.end("failed: no memory")
    browser.until(lambda: "failed: no memory" in browser.texts(".headline .who")[0], "how it ended")
    assert browser.complaints() == []


@pytest.mark.full
def test_nothing_comes_from_elsewhere(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    ratio_writer(tmp_path, batches=5)
    browser.open(page.url)
    browser.until(lambda: len(browser.find("canvas")) >= 4, "the charts")
    asked = [url for url in browser.requests() if urlsplit(url).scheme not in ("data", "blob")]
    assert asked
    assert {urlsplit(url).netloc for url in asked} == {f"127.0.0.1:{page.port}"}


@pytest.mark.full
def test_a_delay_beside_a_ratio(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    ratio_writer(tmp_path, batches=5)
    about = dataclasses.replace(DELAY, query_id="id-0", query="peaks 0")
    writer = SeriesWriter(series_path(tmp_path / "delay", "id-0"), about, next_batch=0)
    for batch in range(5):
        writer.add(delay_point(batch, delay_s=2.5, shed_ratio=0.25))
    browser.open(page.url)
    browser.until(lambda: len(browser.find("canvas")) >= 8, "the charts of both")
    assert sorted(browser.texts(".headline .word")) == ["✓ KEPT", "✗ BROKEN"]
    assert "DELAY 2 s" in browser.texts(".headline .promised")
    assert browser.texts(".card .word")[0] == "✗ BROKEN", "what is broken comes first"
    assert browser.complaints() == []


@pytest.mark.full
def test_standing_queries(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    writer = SeriesWriter(series_path(tmp_path / "standing", STANDING.query_id), STANDING, next_batch=0)
    writer.add(standing_point(0))
    browser.open(page.url)
    browser.until(lambda: len(browser.find("canvas")) >= 4, "the charts")
    assert word(browser) == "… LEARNING", "too few evaluations for a verdict"
    for batch in range(1, 6):
        writer.add(standing_point(batch))
    browser.until(lambda: word(browser) == "✓ KEPT", "enough of them")
    facts = browser.texts(".headline .facts")[0]
    assert "within the bound 97.5% of the time" in facts and "90% when next evaluated" in facts
    counts = dict(zip(browser.texts(".fates dt"), browser.texts(".fates dd"), strict=True))
    shown = {"queries": "1,000", "evaluated": "600", "deferred": "5,340", "guessed": "30", "withheld": "10"}
    assert {name: counts[name] for name in shown} == shown
    assert "answers stand until they are due" in "\n".join(browser.texts("table"))
    assert browser.complaints() == []


@pytest.mark.full
def test_results_and_sources_appear_once_they_are_known(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    writer = ratio_writer(tmp_path, batches=5)
    browser.open(page.url)
    browser.until(lambda: len(browser.find("canvas")) >= 4, "the charts")
    assert "Latest results" not in "".join(browser.texts("h3"))
    writer.add_results(ResultRows(("window_end", "peak"), (("22:13:44", "97.5"),)))
    browser.until(lambda: "97.5" in "".join(browser.texts("td")), "a result")
    writer.add(dataclasses.replace(ratio_point(5), sources=(("HFDC01", 400, 2500.0), ("HFDC02", 600, 100.0))))
    browser.until(lambda: len(browser.find("canvas")) >= 7, "a chart by source")
    browser.until(lambda: "HFDC01" in "".join(browser.texts("table")), "a table of them")
    sources = "".join(browser.texts("table"))
    assert sources.index("HFDC01") < sources.index("HFDC02"), "furthest behind first"
    assert browser.complaints() == []


@pytest.mark.full
def test_fifty_queries_of_a_thousand_batches(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    ratio_writer(tmp_path, 0, batches=1000)
    first = series_path(tmp_path / "p0", "id-0").read_text()
    for number in range(1, 50):
        path = series_path(tmp_path / f"p{number}", f"id-{number}")
        path.parent.mkdir()
        path.write_text(first.replace("id-0", f"id-{number}").replace("peaks 0", f"peaks {number}"))
    browser.open(page.url)
    browser.until(lambda: len(browser.find(".card")) == 50 and len(browser.find("canvas")) >= 4, "all cards")
    assert "50 queries running" in browser.texts(".sum")[0]
    other = next(card for card in browser.find(".card") if "peaks 31" in card.text)
    browser.driver.execute_script("arguments[0].click()", other)
    browser.until(lambda: "peaks 31 /" in browser.texts(".headline .who")[0], "the chosen query")
    about = dataclasses.replace(RATIO, query_id="id-31", query="peaks 31")
    SeriesWriter(series_path(tmp_path / "p31", "id-31"), about, next_batch=1000).add(ratio_point(1000))
    browser.until(lambda: rows(browser) == "1,001,000", "an update among fifty")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.full
def test_it_fits_phones_and_desktops_in_light_and_dark(
    browser: Browser, page: PageServer, tmp_path: Path, width: int
) -> None:
    ratio_writer(tmp_path, batches=40)
    papers, inks = set(), set()
    for dark in (False, True):
        browser.open(page.url, width=width, dark=dark)
        browser.until(lambda: len(browser.find("canvas")) >= 4, "the charts")
        browser.until(lambda: scheme(browser) == ("dark" if dark else "light"), "the scheme")  # noqa: B023 - waited for
        assert not browser.overflows()
        papers.add(browser.style("body", "backgroundColor"))
        inks.add(browser.style(".headline .word", "color"))
        assert browser.complaints() == []
    assert len(papers) == len(inks) == 2


@pytest.mark.full
def test_names_from_outside_cannot_become_markup(browser: Browser, page: PageServer, tmp_path: Path) -> None:
    about = dataclasses.replace(RATIO, query="<img src=x onerror=document.title='taken'>")
    writer = SeriesWriter(series_path(tmp_path, about.query_id), about, next_batch=0)
    writer.add(ratio_point(0, cause="<b>bold</b>"))
    browser.open(page.url)
    browser.until(lambda: "<img" in browser.texts(".headline .who")[0], "the name as it is")
    assert browser.find("img") == [] and browser.driver.title == "Slackwater"


def first_message(port: int, headers: dict[str, str]) -> str | bytes | None:
    """The first message of the page's websocket; None if the server closes it."""

    async def ask() -> str | bytes | None:
        request = HTTPRequest(f"ws://127.0.0.1:{port}/ws", headers=headers)
        session = generate_jwt_token(generate_session_id())
        connection = await websocket_connect(request, subprotocols=["bokeh", session])
        try:
            return await connection.read_message()
        finally:
            connection.close()

    return asyncio.run(ask())


def test_off_loopback_the_page_requires_its_token(tmp_path: Path) -> None:
    served = PageServer(lambda: [tmp_path], port=0, host="0.0.0.0")
    try:
        assert served.token is not None and served.token in served.url
        plain = f"http://127.0.0.1:{served.port}/"
        for refused in (plain, plain + "?token=guessed"):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(refused)
            assert error.value.code == 403
        with urllib.request.urlopen(plain + f"?token={served.token}") as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
            assert "HttpOnly" in answer.headers["Set-Cookie"]
        again = urllib.request.Request(plain, headers={"Cookie": cookie})
        with urllib.request.urlopen(again) as answer:
            assert b"Slackwater" in answer.read()
        assert first_message(served.port, {}) is None, "the websocket is shut at once"
        assert "ACK" in str(first_message(served.port, {"Cookie": cookie}))
    finally:
        served.close()


@pytest.mark.full
def test_the_page_with_a_token_works_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    writer = ratio_writer(tmp_path, batches=5)
    served = PageServer(lambda: [tmp_path], port=0, token="open sesame")
    try:
        browser.open(served.url)
        browser.until(lambda: rows(browser) == "5,000", "the page")
        writer.add(ratio_point(5))
        browser.until(lambda: rows(browser) == "6,000", "an update through its websocket")
    finally:
        served.close()


def test_a_port_that_is_taken_is_refused_with_advice(page: PageServer, tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match="port-taken.*choose another port"):
        PageServer(lambda: [tmp_path], port=page.port)


def test_a_page_without_a_port_takes_a_free_one_if_its_own_is_taken(tmp_path: Path) -> None:
    first, second = (PageServer(lambda: [tmp_path]) for _ in range(2))
    try:
        assert first.port != second.port
        assert urllib.request.urlopen(second.url).status == 200
        with pytest.raises(MissingRequirement, match="port-taken"):
            PageServer(lambda: [tmp_path], port=second.port)
    finally:
        first.close()
        second.close()


def test_an_unknown_host_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match="unknown-host"):
        PageServer(lambda: [tmp_path], port=0, host="300.1.1.1")
