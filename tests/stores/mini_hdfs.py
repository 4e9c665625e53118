"""Starts the small HDFS cluster that Hadoop's own tests use: a name node and a data node in one process.

The cluster ends when this process ends: a shell waits for the end of a pipe that only this process can write to, and
then kills the cluster.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType

JARS = Path(__file__).parents[2] / ".cache" / "hdfs"
# The Hadoop class that starts clusters for tests of other projects.
MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
GUARD = '"$@" </dev/null & server=$!; read -r line; kill -9 $server'
PATIENCE = 120


def is_installed() -> bool:
    return (JARS / ".complete").is_file()


class MiniHdfs:
    """A running cluster, which has no files at first and keeps its data in `directory`."""

    def __init__(self, directory: Path) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # The cluster writes this file when all its parts are running.
        details = directory / "details.json"
        home = os.environ.get("JAVA_HOME")
        # The cluster runs only for seconds, so a quick start matters more than fast code.
        command = [f"{home}/bin/java" if home else "java", "-Xmx256m", "-XX:+UseSerialGC"]
        command += [f"-Dtest.build.data={directory}", "-cp", str(JARS / "*"), MAIN]
        command += ["-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(details)]
        log = directory / "log"
        with log.open("w") as output:
            self._guard = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", *command], stdin=subprocess.PIPE, stdout=output, stderr=output
            )
        deadline = time.monotonic() + PATIENCE
        while not details.is_file():
            if time.monotonic() > deadline:
                self.close()
                raise TimeoutError(f"the HDFS cluster does not answer:\n{log.read_text()}")
            time.sleep(0.02)
        self.name_node = f"127.0.0.1:{port}"

    @property
    def root(self) -> str:
        """Returns the URL of the file system's root, without a trailing slash."""
        return f"hdfs://{self.name_node}"

    def close(self) -> None:
        """Ends the cluster."""
        assert self._guard.stdin
        self._guard.stdin.close()
        self._guard.wait(60)

    def __enter__(self) -> MiniHdfs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
