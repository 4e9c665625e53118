"""Starts the processes of the contenders and sends them requests: one process per measurement or per Spark
session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any

from benches.contender import JVM_SESSION, Contender

ROOT = Path(__file__).parent.parent


class CouldNotRun(Exception):  # noqa: N818 (an outcome of a contender, which the report names)
    """A contender could not be measured; the message is the reason."""


@dataclass(frozen=True)
class Places:
    """Where the Makefile has installed the Python environments, the JVM connector and the program `benches/kernel`."""

    python: Path = Path(sys.executable)
    jvm_python: Path = ROOT / ".venvs" / "4.2" / "bin" / "python"
    jars: Path = ROOT / ".cache" / "jars"
    kernel: Path = ROOT / ".cache" / "kernel-target" / "release" / "bench-kernel"
    datafusion_python: Path = ROOT / ".cache" / "datafusion" / "bin" / "python"

    def command(self, contender: Contender) -> tuple[Path, dict[str, str]]:
        """Returns the Python interpreter of a contender, and additional environment variables for its process."""
        if contender.program:
            if not self.kernel.exists():
                raise CouldNotRun(f"no {self.kernel}; `make bench` builds it")
            return self.python, {"DELTALOG_BENCH_KERNEL": str(self.kernel)}
        if contender.datafusion:
            if not self.datafusion_python.exists():
                raise CouldNotRun(f"no {self.datafusion_python}; `make bench` sets it up")
            return self.datafusion_python, {}
        if contender.session != JVM_SESSION:
            return self.python, {}
        jars = sorted(str(jar) for jar in self.jars.glob("*.jar"))
        if not (self.jvm_python.exists() and jars):
            raise CouldNotRun(f"no {self.jvm_python} or no jars in {self.jars}; `make bench` sets them up")
        return self.jvm_python, {"DELTALOG_BENCH_JARS": ",".join(jars)}


class Worker:
    """One process of `benches.worker`."""

    def __init__(self, python: Path, environment: Mapping[str, str], directory: Path) -> None:
        self._log = directory / "log"
        also = {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(directory),
            "PYSPARK_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **environment,
        }
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "benches.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=directory,
                env={**os.environ, **also},
                start_new_session=True,
            )

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Returns the answer or raises `CouldNotRun`. A worker that takes longer than `seconds` is ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = Timer(seconds, self._kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except KeyboardInterrupt:
            self._kill()
            raise
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        if not line:
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            raise CouldNotRun(
                "the process ended: " + " ".join(last) if in_time else f"took more than {seconds:.0f} s"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise CouldNotRun(" ".join(answer["error"].split())[:300])
        return answer

    def close(self) -> None:
        """Ends the process, and also the JVM if it has started one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._kill()
            self._process.wait()
            self._process.stdout.close()

    def _kill(self) -> None:
        """Kills the process group, which contains only processes that this worker started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Pool:
    """Sends requests to contenders. Workers with sessions live until the pool is closed."""

    def __init__(self, places: Places, directory: Path, seconds: float) -> None:
        self._places, self._directory, self._seconds = places, directory, seconds
        self._sessions: dict[str, Worker] = {}
        self._started = 0

    def ask(self, contender: Contender, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = {"contender": contender.module, "operation": operation, "arguments": arguments}
        if contender.session is None or contender.fresh:
            worker = self._start(contender)
            try:
                return worker.ask(request, self._seconds)
            finally:
                worker.close()
        if contender.session not in self._sessions:
            self._sessions[contender.session] = self._start(contender)
        return self._sessions[contender.session].ask(request, self._seconds)

    def _start(self, contender: Contender) -> Worker:
        python, environment = self._places.command(contender)
        directory = self._directory / f"worker-{self._started}"
        self._started += 1
        directory.mkdir()
        return Worker(python, environment, directory)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._sessions.values():
            worker.close()
