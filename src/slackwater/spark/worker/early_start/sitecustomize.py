"""Lets a source's process beside the driver connect to Spark first and import afterwards.

Spark gives such a process ten seconds from its start to the connection, and no setting changes that. Spark's own module
imports itself, PyArrow and NumPy in between: a fifth of a second of processor time, which may take longer than ten
seconds on a busy machine. The query then fails with "Python worker failed to connect back". Once the process is
connected, Spark waits for it.

Python imports this module as it starts, because the ``PYTHONPATH`` of our sources names this folder. Where the folder
does not exist, as on other machines, Spark starts the process in its own way. Until the process is connected, nothing
may be imported but these three modules.
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


def run_source(spark: socket.socket) -> None:
    """Do what Spark's module does, in another order."""
    spark.sendall(os.getpid().to_bytes(4, "big"))
    load_hidden()
    sys.path.insert(0, str(os.getcwd()))  # noqa: PTH109 (an import less)
    import importlib

    worker = importlib.import_module(WORKER)
    with spark.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))) as file:
        worker.main(file, file)


def load_hidden() -> None:
    """Import the module of the same name that this one hides, if there is one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    own = os.path.dirname(__file__)  # noqa: PTH120
    spec = PathFinder.find_spec(__name__, [folder for folder in sys.path if folder != own])
    if spec is not None and spec.loader is not None:
        sys.modules[__name__] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _start() -> None:
    if WORKER not in sys.orig_argv:
        load_hidden()
        return
    code: object = 1
    try:
        run_source(connection())
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        # This is the import of a module that must not fail; Python must not go on to run Spark's module.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) and code >= 0 else 1)


if __name__ == "sitecustomize":
    _start()
