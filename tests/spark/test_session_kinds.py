"""Sessions of every kind: each has everything that the enabled session has, and none loses a byte of a table."""

import json
import socket
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.spark.session_kinds import KINDS, READS, REFUSED, WORKS

Outcomes = dict[str, dict[str, dict[str, Any]]]

# The session that was in use when another one was enabled: Spark has no place where it would get our rules later.
LATE = "used before"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    directory = tmp_path_factory.mktemp("kinds")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.spark.session_kinds", str(directory), str(port)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Outcomes = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("statement", [*WORKS, *REFUSED])
@pytest.mark.parametrize("kind", KINDS)
def test_no_session_loses_a_byte(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["lost"] == [], outcome["error"]
    assert outcome["entry"], outcome["error"]
    assert outcome["entries without a log"] == [], outcome["error"]


@pytest.mark.parametrize("statement", WORKS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != LATE])
def test_every_session_has_everything(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["error"] is None
    logged = [file for file in outcome["added"] if file.startswith("_delta_log/")]
    is_change = statement not in READS
    assert bool(logged or outcome["has created"]) == is_change


@pytest.mark.parametrize("statement", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_what_would_pass_the_log_by_is_refused(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["error"] is not None
    assert outcome["added"] == []
