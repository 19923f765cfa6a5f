"""Size of the live page and cost of its server, with 50 queries of 1 000 micro-batches and one visitor.

Every query gets one more micro-batch per second during the measurement. Needs Chromium and its driver.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.helpers.browser import new_browser
from tests.helpers.series import RATIO, ratio_point

from slackwater.watching.series_file import SeriesWriter, series_path


def main() -> None:
    """Measure and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--batches", type=int, default=1000, help="micro-batches per query before the measurement")
    parser.add_argument("--seconds", type=int, default=30, help="length of the measurement with a visitor")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        writers = _writers(Path(folder), options.queries, options.batches)
        command = [sys.executable, "-m", "slackwater.cli.main", "watch", folder, "--port", "0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        try:
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found is not None
            print(json.dumps(_measure(found[0], server.pid, writers, options.batches, options.seconds), indent=2))
        finally:
            server.terminate()
            server.wait()


def _writers(folder: Path, queries: int, batches: int) -> list[SeriesWriter]:
    writers = []
    for number in range(queries):
        about = dataclasses.replace(RATIO, query_id=f"id-{number}", query=f"query {number}")
        writer = SeriesWriter(series_path(folder / f"p{number}", about.query_id), about, next_batch=0)
        for batch in range(batches):
            writer.series.add(ratio_point(batch))
        writer._rewrite()
        writers.append(writer)
    return writers


def _measure(url: str, pid: int, writers: list[SeriesWriter], batch: int, seconds: int) -> dict[str, Any]:
    began = time.monotonic()
    with urllib.request.urlopen(url) as answer:
        html = answer.read()
    first_s = time.monotonic() - began
    scripts = [s for s in re.findall(rb'src="([^"]+)"', html) if b"static" in s]
    sizes = [len(urllib.request.urlopen(url + s.decode().lstrip("/")).read()) for s in scripts]
    idle = _cpu_share(pid, 10.0, lambda: None)
    with new_browser() as browser:
        browser.open(url)
        browser.until(lambda: len(browser.find("canvas")) >= 4, "the page")
        document = _received(browser.driver)
        count = [batch]

        def one_second() -> None:
            for writer in writers:
                writer.add(ratio_point(count[0]))
            count[0] += 1

        busy = _cpu_share(pid, float(seconds), one_second)
        updates = _received(browser.driver)
    return {
        "queries": len(writers),
        "batches": batch,
        "html_bytes": len(html),
        "script_bytes_once": sum(sizes),
        "document_bytes": document,
        "update_bytes_per_s": round(updates / seconds),
        "first_answer_s": round(first_s, 2),
        "server_cpu_share_without_visitors": idle,
        "server_cpu_share_with_a_visitor": busy,
        "server_resident_mb": round(_resident(pid) / 1e6),
    }


def _received(driver: Any) -> int:
    """Bytes received through the page's websocket since the last call."""
    entries = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    frames = [e for e in entries if e["method"] == "Network.webSocketFrameReceived"]
    return sum(len(e["params"]["response"]["payloadData"]) for e in frames)


def _cpu_share(pid: int, seconds: float, each_second: Any) -> float:
    before, began = _cpu_s(pid), time.monotonic()
    while (left := began + seconds - time.monotonic()) > 0:
        each_second()
        time.sleep(min(1.0, max(left, 0.0)))
    return round((_cpu_s(pid) - before) / (time.monotonic() - began), 4)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
