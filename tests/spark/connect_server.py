"""A Connect server and its clients, in separate processes, because a process has one kind of session."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pyspark
import pytest


def run_client(code: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
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

    Its log and its event log are in the directory `logs`; `more` are settings.
    """
    directory = tmp_path_factory.mktemp("of the server")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(str(pyspark.__file__)).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
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
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in {**settings, **(more or {})}.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, **environment}
    log = logs / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 180
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}", directory
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
