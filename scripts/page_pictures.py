"""Takes the pictures of the live page during the demo: ``make page-pictures``. Needs Chromium and its driver."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.helpers.browser import Browser, new_browser  # noqa: E402 - found by its path

IMAGES = ROOT / "docs" / "images"
_LAST_PART = re.compile(r"1\d\d s, bursts")
"""The line of progress after which the pictures are taken: lateness has drifted, and comes in bursts."""


def main() -> None:
    """Run the demo, and take a picture on a desktop and one on a phone shortly before its end."""
    command = [sys.executable, "-m", "slackwater.cli.main", "demo", "--watch", "0", *sys.argv[1:]]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    assert demo.stdout is not None
    try:
        url = ""
        for line in demo.stdout:
            found = re.search(r"http://\S+", line)
            url = found[0] if found else url
            if url and _LAST_PART.match(line):
                break
        with new_browser() as browser:
            take(browser, url, IMAGES / "page.png", width=1280, height=1120, dark=False)
            take(browser, url, IMAGES / "page-phone.png", width=390, height=1240, dark=True)
        demo.stdout.read()
    finally:
        demo.terminate()
        demo.wait()


def take(browser: Browser, url: str, path: Path, *, width: int, height: int, dark: bool) -> None:
    """Save what a screen of that size shows."""
    browser.open(url, width=width, height=height, dark=dark)
    browser.until(lambda: len(browser.find("canvas")) >= 6, "the charts")
    scheme = "return Bokeh.documents[0].get_model_by_name('scheme').value"
    browser.until(lambda: browser.driver.execute_script(scheme) == ("dark" if dark else "light"), "the colours")
    browser.driver.save_screenshot(str(path))
    print(path.relative_to(ROOT), f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
