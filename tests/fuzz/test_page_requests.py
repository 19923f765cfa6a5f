"""The server of the live page under hostile requests: it hands out no file, asks for its token and goes on serving."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from slackwater.watching.page_server import PageServer
from tests.helpers.series import ratio_writer

TOKEN = "a secret token"
REQUESTS = min(int(os.environ.get("SLACKWATER_FUZZ", "20")), 500)
SECRET = "not for the page"
TRAVERSALS = [
    "/../secret.txt",
    "/static/../../secret.txt",
    "/static/..%2f..%2f..%2fsecret.txt",
    "/static/%2e%2e/%2e%2e/secret.txt",
    "/static//{folder}/secret.txt",
    "/{folder}/secret.txt",
    "/static/js/..\\..\\secret.txt",
    "/static/%00/secret.txt",
    "/static/js/bokeh.min.js%00../../secret.txt",
    "/?query=../../{folder}/secret.txt",
    "/autoload.js?bokeh-autoload-element=x&bokeh-app-path=/../{folder}/secret.txt",
    "file:///{folder}/secret.txt",
    "http://elsewhere.example/{folder}/secret.txt",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a series, and a file that no page may hand out."""
    made = tmp_path_factory.mktemp("served")
    (made / "secret.txt").write_text(SECRET)
    ratio_writer(made, batches=2)
    return made


@pytest.fixture(scope="module")
def pages(folder: Path) -> Iterator[tuple[PageServer, PageServer]]:
    """A page without a token, as on loopback, and one with a token, over the folder."""
    open_page, closed = (PageServer(lambda: [folder], port=0, token=token) for token in (None, TOKEN))
    yield open_page, closed
    open_page.close()
    closed.close()


def ask(page: PageServer, request: bytes, *, then_close: bool = False) -> bytes:
    """The answer to raw bytes; empty if the server closes the connection. ``then_close`` sends nothing more."""
    with socket.create_connection((page.host, page.port), timeout=30) as connection:
        try:
            connection.sendall(request)
            if then_close:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            return b""
    return answer


def get(page: PageServer, target: str, *headers: str) -> bytes:
    lines = [f"GET {target} HTTP/1.1", f"Host: {page.host}:{page.port}", "Connection: close", *headers, "", ""]
    return ask(page, "\r\n".join(lines).encode(errors="replace"))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


def serves(pages: tuple[PageServer, PageServer]) -> None:
    """Both pages still answer a visitor, and ask for the token where there is one."""
    open_page, closed = pages
    assert status(get(open_page, "/")) == 200
    assert status(get(closed, "/?token=a%20secret%20token")) == 200
    assert status(get(closed, "/")) in (302, 403)


def test_no_path_leads_to_a_file(pages: tuple[PageServer, PageServer], folder: Path) -> None:
    for page in pages:
        for path in TRAVERSALS:
            answer = get(page, path.replace("{folder}", str(folder).lstrip("/")))
            assert SECRET.encode() not in answer and b"root:" not in answer, path
    serves(pages)


def test_a_null_byte_is_refused(pages: tuple[PageServer, PageServer], caplog: pytest.LogCaptureFixture) -> None:
    for page in pages:
        for path in ("/static/%00/secret.txt", "/static/js/bokeh.min.js%00", "/%00"):
            assert status(get(page, path)) == 400
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("token", ["", "a", TOKEN[:-1], TOKEN + "x", "A SECRET TOKEN", "\x00", "é", "%ff", "x" * 5000])
def test_another_token_opens_nothing(pages: tuple[PageServer, PageServer], token: str) -> None:
    _, closed = pages
    for answer in (
        get(closed, f"/?token={quote(token, safe='%')}"),
        get(closed, "/", f"Cookie: slackwater-token={quote(token)}"),
    ):
        assert status(answer) in (302, 400, 403) and b"bokeh" not in answer.lower().partition(b"\r\n\r\n")[2]
    serves(pages)


def test_large_requests_are_refused_and_do_no_harm(pages: tuple[PageServer, PageServer]) -> None:
    for page in pages:
        assert status(get(page, "/" + "a" * 200_000)) in (0, 400, 404, 414, 431)
        assert status(get(page, "/", "X-Large: " + "a" * 200_000)) in (0, 400, 431)
        assert status(get(page, "/", *(f"X-{i}: a" for i in range(20_000)))) in (0, 400, 431)
        large = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {10**12}\r\n\r\n".encode()
        assert status(ask(page, large + b"a" * 100_000)) in (0, 400, 403, 405, 413)
    serves(pages)


def test_clients_that_send_nothing_keep_nobody_waiting(pages: tuple[PageServer, PageServer]) -> None:
    waiting = [socket.create_connection((page.host, page.port)) for page in pages for _ in range(100)]
    for number, connection in enumerate(waiting):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "[: number % 40])
    serves(pages)
    for connection in waiting:
        connection.close()
    serves(pages)


def test_any_bytes_are_answered_or_refused(pages: tuple[PageServer, PageServer]) -> None:
    rng = random.Random(2006)
    good = b"GET /?query=x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nCookie: slackwater-token=x\r\n\r\n"
    for _ in range(REQUESTS):
        request = bytearray(good if rng.random() < 0.8 else rng.randbytes(rng.randrange(1, 400)))
        for _ in range(rng.randrange(6)):
            request[rng.randrange(len(request))] = rng.randrange(256)
        for page in pages:
            answer = ask(page, bytes(request), then_close=True)
            assert SECRET.encode() not in answer and b"Traceback" not in answer, bytes(request)
    serves(pages)


@pytest.mark.parametrize(
    "origin", ["http://elsewhere.example", "null", "http://127.0.0.1.elsewhere.example", "https://127.0.0.1:1"]
)
def test_a_page_elsewhere_opens_no_websocket(pages: tuple[PageServer, PageServer], origin: str) -> None:
    """Off loopback any origin may ask, and the token decides; on loopback the origin does."""
    for page in pages:
        token = generate_jwt_token(generate_session_id())
        request = HTTPRequest(f"ws://127.0.0.1:{page.port}/ws", headers={"Origin": origin})

        async def first_message(request: HTTPRequest = request, token: str = token) -> str | bytes | None:
            connection = await websocket_connect(request, subprotocols=["bokeh", token])
            return await connection.read_message()

        try:
            assert asyncio.run(first_message()) is None, "shut at once"
        except HTTPClientError as error:
            assert error.code == 403
    serves(pages)
