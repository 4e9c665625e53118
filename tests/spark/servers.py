"""Runs Spark's servers in separate processes, on their own ports, until the test ends."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark

HOME = Path(str(pyspark.__file__)).parent
_MOST_SECONDS = 180
_PR_SET_PDEATHSIG = 1


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], port: int, directory: Path, log: Path, **environment: str
) -> Iterator[None]:
    """Runs a server that listens at the port, until the end of the `with` block. Its output goes to the file `log`.

    The server ends when the test process ends, even if it is killed.
    """
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, **environment}
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        deadline = time.monotonic() + _MOST_SECONDS
        while not _listens(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def _end_with_parent() -> None:
    """Makes Linux kill this process when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def thrift_command(port: int, directory: Path, *arguments: str) -> list[str]:
    """Returns the command of a Thrift server with deltalog's extensions and a metastore in the directory."""
    settings = {
        "spark.sql.extensions": "io.deltalog.spark.DeltalogExtensions",
        "spark.deltalog.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={directory / 'metastore'};create=true"
        ),
    }
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[4]", *arguments]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
    for name, value in {"port": str(port), "bind.host": "127.0.0.1"}.items():
        command += ["--hiveconf", f"hive.server2.thrift.{name}={value}"]
    return command
