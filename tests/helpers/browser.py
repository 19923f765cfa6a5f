"""A headless Chromium, and functions that look into the page it shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

# Bokeh draws into shadow trees: look through all of them
_FIND = """
const found = [];
const walk = root => {
  root.querySelectorAll(arguments[0]).forEach(e => found.push(e));
  root.querySelectorAll('*').forEach(e => { if (e.shadowRoot) walk(e.shadowRoot); });
};
walk(document);
return found;
"""


class Browser:
    """One browser window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a page on a screen of the given size, in the light or the dark colour scheme."""
        self._tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._tell("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(url)

    def find(self, selector: str) -> list[Any]:
        """All elements that match a selector, also those in shadow trees."""
        return list(self.driver.execute_script(_FIND, selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match a selector."""
        return [str(self.driver.execute_script("return arguments[0].innerText", e)) for e in self.find(selector)]

    def until(self, holds: Callable[[], Any], why: str) -> None:
        """Wait until ``holds()`` is true; fail with ``why`` after 30 seconds."""
        ignored = (Exception,)  # an element may be replaced while it is read
        WebDriverWait(self.driver, 30, poll_frequency=0.1, ignored_exceptions=ignored).until(lambda _: holds(), why)

    def complaints(self) -> list[str]:
        """The errors and warnings on the browser's console."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Every address that the page requested, websockets included."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent"]
        return urls + [e["params"]["url"] for e in entries if e["method"] == "Network.webSocketCreated"]

    def overflows(self) -> bool:
        """Whether the page is wider than the screen."""
        root = "document.documentElement"
        return bool(self.driver.execute_script(f"return {root}.scrollWidth > {root}.clientWidth"))

    def style(self, selector: str, name: str) -> str:
        """A computed style of the first element that matches a selector."""
        ask = "return getComputedStyle(arguments[0])[arguments[1]]"
        return str(self.driver.execute_script(ask, self.find(selector)[0], name))

    def _tell(self, command: str, **options: Any) -> None:
        self.driver.execute_cdp_cmd(command, options)


@contextmanager
def new_browser() -> Iterator[Browser]:
    """Start a browser; skip the test if Chromium or its driver is missing."""
    binary = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("there is no Chromium with its driver: sh scripts/browser.sh installs both")
    options = Options()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(window)
    finally:
        window.quit()
