"""File systems of the test's own: HDFS, and a server that speaks S3. ``scripts/hadoop.sh`` downloads them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slackwater.spark.completeness.handler import CompletenessHandler
from slackwater.spark.runtime.hadoop_storage import HadoopStorage
from slackwater.spark.runtime.listener import handlers

PARTS = Path(sys.prefix, "hadoop")
_HDFS = """
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("URI " + cluster.getURI());
        System.in.read();
        cluster.shutdown();
        System.exit(0);
    }
}
"""


def parts_are_there() -> bool:
    """Whether ``scripts/hadoop.sh`` has downloaded everything."""
    return (PARTS / "ready").exists()


def wait_for_storages() -> None:
    """Wait until all completeness promises of this process are written to their storages."""
    for handler in handlers(CompletenessHandler):
        for spec in handler._specs.values():
            if isinstance(spec.mailbox.storage, HadoopStorage):
                spec.mailbox.storage.flush(60)


@dataclass
class Store:
    """A folder on a file system that Spark opens with these settings."""

    uri: str
    conf: dict[str, str] = field(default_factory=dict)


@contextmanager
def hdfs(folder: Path) -> Iterator[Store]:
    """HDFS with one data node."""
    folder.mkdir()
    (folder / "MiniHdfs.java").write_text(_HDFS)
    java = shutil.which("java") or "java"
    command = [java, "-Xmx400m", "-cp", f"{PARTS}/hdfs/*", str(folder / "MiniHdfs.java"), str(folder / "data")]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert server.stdout is not None
    line = next((line for line in server.stdout if line.startswith("URI ")), "")
    assert line, (folder / "log").read_text()
    try:
        yield Store(line.removeprefix("URI ").strip())
    finally:
        server.kill()
        server.wait()


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    """A bucket behind the S3 protocol."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [str(PARTS / "s3server/bin/moto_server"), "-H", "127.0.0.1", "-p", address.split(":")[1]]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        _make_bucket(f"http://{address}/bucket", server)
        yield Store(
            "s3a://bucket",
            {
                "spark.driver.extraClassPath": f"{PARTS}/s3a/*",
                "spark.hadoop.fs.s3a.endpoint": f"http://{address}",
                "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.access.key": "any",
                "spark.hadoop.fs.s3a.secret.key": "any",
                "spark.hadoop.fs.s3a.path.style.access": "true",
            },
        )
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str, server: subprocess.Popen[bytes]) -> None:
    while True:
        assert server.poll() is None
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()
            return
        except urllib.error.URLError:
            time.sleep(0.1)  # it has no other sign of readiness than that it answers
