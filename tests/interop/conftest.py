"""Fixtures of the interop tests. The tests share two Spark sessions: one with the JVM connector, and one with
deltalog.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from tests.conftest import ROOT, missing

PYTHON = ROOT / ".venvs" / "4.2" / "bin" / "python"
JARS = ROOT / ".cache" / "jars"


class Jvm:
    """The connection to the process of `jvm_peer.py`."""

    def __init__(self, process: subprocess.Popen[str], results: Path) -> None:
        self._process = process
        self._result = results / "result.arrow"

    def _answer(self, request: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def _ask(self, request: dict[str, Any]) -> None:
        answer = self._answer(request)
        assert answer == "ok", answer

    def run(self, sql: str) -> None:
        self._ask({"sql": sql, "to": None})

    def attempt(self, sql: str) -> str | None:
        """Runs a statement. If it fails, returns its error."""
        answer = self._answer({"sql": sql, "to": None})
        assert answer == "ok" or answer.startswith("error: "), answer
        return None if answer == "ok" else answer

    def query(self, sql: str) -> pa.Table:
        self._ask({"sql": sql, "to": str(self._result)})
        return _read(self._result)

    def write_stream(self, directory: Path, table: Path, checkpoint: Path, *, by_window: bool) -> None:
        """Runs a stream that writes the rows of the files in `directory` to a table, until it has written all of them.
        See `stream_of_files` in `jvm_peer.py` for `by_window`.
        """
        request = {"write_stream": str(directory), "to": str(table), "checkpoint": str(checkpoint)}
        self._ask({**request, "by_window": by_window})

    def versions(self, table: Path, versions: list[int]) -> list[tuple[pa.Table, dict[str, Any]]]:
        """Returns two results for each version: its rows, and an object with its protocol, metadata, application
        transactions and domains as they are in the log.
        """
        self._ask({"table": str(table), "versions": versions, "to": str(self._result)})
        states = json.loads(self._result.read_text())
        files = [self._result.with_name(f"{self._result.name}.{version}") for version in versions]
        return list(zip(map(_read, files), states, strict=True))

    def stream(
        self, table: Path, checkpoint: Path, options: dict[str, str], column: str
    ) -> tuple[list[list[Any]], str | None]:
        """Continues a stream until it has read everything. Returns the values of a column or expression in each batch,
        and the stream's error if it failed.
        """
        request = {"stream": str(table), "options": options, "checkpoint": str(checkpoint), "column": column}
        self._result.write_text("[]")
        answer = self._answer({**request, "to": str(self._result)})
        assert answer == "ok" or answer.startswith("error: "), answer
        return json.loads(self._result.read_text()), None if answer == "ok" else answer


def _read(file: Path) -> pa.Table:
    with pa.OSFile(str(file)) as source:
        return pyarrow.ipc.open_file(source).read_all()


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    jars = sorted(str(jar) for jar in JARS.glob("*.jar"))
    if not (PYTHON.exists() and jars):
        missing("the JVM connector is not set up; `make test-python` does it")
    directory = tmp_path_factory.mktemp("jvm")
    with (directory / "log").open("w") as log:
        command = [str(PYTHON), str(Path(__file__).with_name("jvm_peer.py")), *jars]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=directory
        )
        with process:
            yield Jvm(process, directory)
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Returns a session of the newest Spark with deltalog, in which tests make the same changes as in the connector's
    session.
    """
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        # The tables are small, so compiling code for a query would take longer than running the query.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("deltalog beside the connector")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield deltalog.spark.enable(session)
    session.stop()
