"""Runs a Spark Connect server and its clients in separate processes, because a process can have only one kind of
session.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.spark.servers import HOME, free_port, running

# If PySpark cannot import `pyspark.core`, it behaves like `pyspark-client`, the package without a JVM.
PURE_CLIENT = """
import sys

class Missing:
    def find_spec(self, name, path, target=None):
        if f"{name}.".startswith(("py4j.", "pyspark.core.", "pyspark.sql.classic.")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

# Spark waits only ten seconds until the Python process of `foreachBatch` has started, so the start is tried again.
STARTED = """
def started(writer):
    for _ in range(20):
        try:
            return writer.start()
        except Exception as error:
            if "failed to connect back" not in str(error):
                raise
    raise TimeoutError
"""


def run_client(code: str, directory: Path, *, is_pure: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a client's code in a new process. If `is_pure` is True, the client has only the modules of
    `pyspark-client`.
    """
    return subprocess.run(
        [sys.executable, "-c", (PURE_CLIENT if is_pure else "") + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=directory,
        env={name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
    )


def running_server(
    tmp_path_factory: pytest.TempPathFactory,
    logs: Path | None = None,
    more: Mapping[str, str] | None = None,
    **environment: str,
) -> Iterator[tuple[str, Path]]:
    """Yields the address and the working directory of a Connect server in a separate process.

    Its log and its event log are in the directory `logs`. `more` are additional settings.
    """
    directory = tmp_path_factory.mktemp("of the server")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "1",
    }
    if logs is None:
        logs = tmp_path_factory.mktemp("logs")
    else:
        settings["spark.eventLog.enabled"] = "true"
        settings["spark.eventLog.dir"] = logs.as_uri()
        settings["spark.eventLog.compress"] = "false"
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in {**settings, **(more or {})}.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with running(command, port, directory, logs / "server.log", **environment):
        yield f"sc://127.0.0.1:{port}", directory
