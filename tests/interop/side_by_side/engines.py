"""Runs cases in two processes at the same time, one with the JVM connector and one with deltalog, on the same Spark
release.
"""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalog
from tests.conftest import ROOT
from tests.interop.conftest import JARS, PYTHON
from tests.interop.side_by_side.cases import Case

Observed = dict[str, str]


def observations(cases: list[Case], directory: Path) -> list[tuple[Observed, Observed]]:
    """Returns the results of the connector and of deltalog for each case."""
    packages = directory / "packages"
    packages.mkdir()
    (packages / "deltalog").symlink_to(Path(deltalog.__file__).parent)
    jars = sorted(map(str, JARS.glob("*.jar")))
    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(_observed, cases, directory / "connector", ["connector", *jars], [ROOT])
        ours = pool.submit(_observed, cases, directory / "deltalog", ["deltalog"], [packages, ROOT])
        return list(zip(theirs.result(), ours.result(), strict=True))


def _observed(
    cases: list[Case], directory: Path, arguments: list[str], packages: list[Path]
) -> list[Observed]:
    directory.mkdir()
    command = [str(PYTHON), "-W", "ignore", "-m", "tests.interop.side_by_side.peer", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=directory,
            env=environment,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        found = []
        for number, case in enumerate(cases):
            request = {
                "directory": str(directory / f"case{number}"),
                "database": f"case{number}",
                "statements": case.statements,
            }
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, (directory / "log").read_text()[-2000:]
            found.append(json.loads(answer))
        process.stdin.close()
        return found
