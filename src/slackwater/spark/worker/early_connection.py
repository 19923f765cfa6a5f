"""Runs a source's process beside the driver: it connects to Spark first and imports afterwards.

Spark gives such a process ten seconds from its start to the connection, and no setting changes that. Spark's own module
imports itself, PyArrow and NumPy in between: a fifth of a second of processor time, which may take longer than ten
seconds on a busy machine. The query then fails with "Python worker failed to connect back". Once the process is
connected, Spark waits for it.

This is a script, run by ``python -S -P``. Until it is connected it may import nothing but these three modules.
"""

import os
import socket
import sys

WORKER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module that Spark starts for a source."""


def connection() -> socket.socket:
    """A connection to the Spark driver that started this process, over which it has shown its secret."""
    path = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
    if path is not None:
        spark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        spark.connect(path)
        return spark
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true" else "127.0.0.1"
    spark = socket.create_connection((host, int(os.environ["PYTHON_WORKER_FACTORY_PORT"])))
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    spark.sendall(len(secret).to_bytes(4, "big") + secret)
    length = int.from_bytes(_received(spark, 4), "big")
    if _received(spark, length) != b"ok":
        raise ConnectionError("Spark did not accept the secret")
    return spark


def _received(spark: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = spark.recv(length - len(data))
        if not more:
            raise ConnectionError("Spark closed the connection")
        data += more
    return data


def main() -> None:
    """Do what Spark's module does, in another order."""
    spark = connection()
    spark.sendall(os.getpid().to_bytes(4, "big"))
    # What Python was told to leave out: the environment's packages, and the folder it was started in.
    import site

    site.main()
    sys.path.insert(0, str(os.getcwd()))  # noqa: PTH109 (an import less)
    import importlib

    worker = importlib.import_module(WORKER)
    with spark.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))) as file:
        worker.main(file, file)


if __name__ == "__main__":
    main()
