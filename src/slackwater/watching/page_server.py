"""Serves the live page: a Bokeh server in its own thread, by default on loopback. This module needs bokeh."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import ipaddress
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.server import Server
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.routing import PathMatches, Rule
from tornado.web import RequestHandler

from slackwater.errors import MissingRequirement
from slackwater.watching.folders import SeriesFinder
from slackwater.watching.page_view import Page
from slackwater.watching.ports import DEFAULT_PAGE_PORT
from slackwater.watching.series import Series

logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # it warns again and again of a closed tab
_COOKIE = "slackwater-token"
_FRESH_S = 0.5


class PageServer:
    """A live page over the series in some folders, until ``close()``.

    Without ``port`` it listens on 4141, or on any free port if that is taken. Off loopback every request needs the
    token; if none is given, one is made. The page loads nothing from elsewhere.
    """

    def __init__(
        self,
        folders: Callable[[], Iterable[Path]],
        *,
        port: int | None = None,
        host: str = "127.0.0.1",
        token: str | None = None,
    ) -> None:
        self.host, self.token = host, token
        if token is None and not is_loopback(host):
            self.token = secrets.token_urlsafe(16)
        self._folders = folders
        self._finder = SeriesFinder(folders)
        self._series: list[Series] = []
        self._series_s = 0.0
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._requested_port = port
        self._loop: IOLoop | None = None
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._run, name="slackwater-page", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise _not_listening(host, port, self._failure) from self._failure

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        assert self._server is not None
        return int(self._server.port or 0)

    @property
    def url(self) -> str:
        """The address to open in a browser, with the token if one is required."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/" + ("" if self.token is None else f"?token={quote(self.token)}")

    def close(self) -> None:
        """Stop serving."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            loop.add_callback(loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        loop = self._loop = IOLoop.current()
        auth = None if self.token is None else _TokenAuth(self.token)
        extra: dict[str, Any] = {} if auth is None else {"auth_provider": auth}
        try:
            self._server = Server(
                {"/": Application(FunctionHandler(self._open))},
                io_loop=loop,
                port=self._free_port() if self._requested_port is None else self._requested_port,
                address=self.host,
                # off loopback the host name of the page is unknown; the token protects it
                allow_websocket_origin=None if auth is None else ["*"],
                check_unused_sessions_milliseconds=5_000,
                unused_session_lifetime_milliseconds=10_000,
                **extra,
            )
            # before Bokeh's own rules, which would fail with an error in the log
            self._server._tornado.wildcard_router.rules.insert(0, Rule(PathMatches(r".*(%00|\x00).*"), _NullByte))
            if auth is None:
                self._server._tornado.websocket_origins.update(
                    f"{name}:{self._server.port}" for name in ("localhost", "127.0.0.1", "[::1]")
                )
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self._find()  # read existing series before the first visitor comes
        self._server.start()
        self._ready.set()
        loop.start()
        self._server.stop()
        loop.close()

    def _free_port(self) -> int:
        """The default port, or 0 (any) if somebody listens there."""
        try:
            for listener in bind_sockets(DEFAULT_PAGE_PORT, self.host):
                listener.close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return 0
        return DEFAULT_PAGE_PORT

    def _open(self, document: Document) -> None:
        context: Any = document.session_context
        requested: list[bytes] = context.request.arguments.get("query", [])
        chosen = requested[0].decode(errors="replace") if requested else None
        Page(document, self._find, lambda: [str(folder) for folder in self._folders()], chosen)

    def _find(self) -> list[Series]:
        """The series, read at most every ``_FRESH_S`` seconds for all visitors together."""
        now_s = time.monotonic()
        if now_s - self._series_s > _FRESH_S:
            self._series, self._series_s = self._finder.find(), now_s
        return self._series


def _not_listening(host: str, port: int, error: OSError) -> MissingRequirement:
    problem = f"cannot listen on {host}:{port} ({error.strerror})"
    if isinstance(error, socket.gaierror):
        return MissingRequirement("unknown-host", problem, "give an address of this machine")
    return MissingRequirement("port-taken", problem, "choose another port, or 0 for any")


class _TokenAuth(AuthProvider):  # type: ignore[misc]
    """Requires the token in the address of the first request, and a cookie in later ones."""

    def __init__(self, token: str) -> None:
        self._token = token
        super().__init__()

    @property
    def get_user(self) -> Any:
        def user(handler: RequestHandler) -> str | None:
            digest = hashlib.sha256(self._token.encode()).hexdigest()
            if hmac.compare_digest((handler.get_cookie(_COOKIE) or "").encode(), digest.encode()):
                return "watcher"
            if not hmac.compare_digest(handler.get_argument("token", "").encode(), self._token.encode()):
                return None
            handler.set_cookie(_COOKIE, digest, httponly=True, samesite="Strict")
            return "watcher"

        return user

    @property
    def login_url(self) -> str:
        return "/refused"

    @property
    def login_handler(self) -> type[RequestHandler]:
        return _Refused


class _NullByte(RequestHandler):
    """The answer to a request for a path that no file can have."""

    def prepare(self) -> None:
        self.set_status(400)
        self.finish()


class _Refused(RequestHandler):
    """The answer to a request without the token."""

    def get(self) -> None:
        self.set_status(403)
        self.finish("This page requires its token: open the address that was printed when the page started.\n")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
