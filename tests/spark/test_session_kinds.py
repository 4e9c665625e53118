"""Runs statements in every kind of session. No session destroys a table's data, apart from the writes in `UNSEEN`.

All statements work as in an enabled session. Sessions that got deltalog's rules too late or not at all may refuse
statements instead, but a statement that they accept commits its change.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.spark.session_kinds import KINDS, READS, REFUSED, WORKS

# The first test takes long, because it waits for the process that executes all statements.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

Outcomes = dict[str, dict[str, dict[str, Any]]]

# Sessions that got deltalog's rules too late or not at all. Spark cannot add rules to a session that is already in use.
LATE = ("used before", "of other extensions", "without us")
# Writes of Spark's own formats to a path. In a session without deltalog's strategy, deltalog does not see them.
UNSEEN = {
    "save, overwrite, Parquet",
    "save, append, CSV",
    "save, overwrite, below the table",
    "save, overwrite, the log",
    "external table over it",
    "INSERT OVERWRITE DIRECTORY",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    directory = tmp_path_factory.mktemp("kinds")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.spark.session_kinds", str(directory), str(port)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Outcomes = json.loads((directory / "outcomes.json").read_text())
    return found


def cells(statements: Iterable[str], kinds: Iterable[str] = KINDS) -> pytest.MarkDecorator:
    """Returns a mark that parametrizes a test with these statements and kinds of sessions."""
    chosen = [
        (kind, statement)
        for kind in kinds
        for statement in statements
        if not (kind == "without us" and statement in UNSEEN)
    ]
    return pytest.mark.parametrize(("kind", "statement"), chosen)


@cells([*WORKS, *REFUSED])
def test_no_session_loses_a_byte(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["lost"] == [], outcome["error"]
    assert outcome["entry"], outcome["error"]
    assert outcome["entries without a log"] == [], outcome["error"]


@cells(WORKS, [kind for kind in KINDS if kind not in LATE])
def test_every_session_has_all_features(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["error"] is None
    assert has_committed(outcome) == (statement not in READS)


@cells(WORKS, LATE)
def test_a_session_without_our_rules_commits_or_refuses(
    outcomes: Outcomes, kind: str, statement: str
) -> None:
    outcome = outcomes[kind][statement]
    if outcome["error"] is None:
        assert has_committed(outcome) == (statement not in READS)
    else:
        assert outcome["added"] == []
        assert not outcome["has created"]


@pytest.mark.parametrize(
    "statement", ["createOrReplace", "CREATE", "ADD COLUMN", "INSERT", "DELETE", "SELECT"]
)
def test_a_session_that_was_in_use_says_what_to_do(outcomes: Outcomes, statement: str) -> None:
    assert "call deltalog.spark.enable(session)" in outcomes["used before"][statement]["error"]


@cells(REFUSED)
def test_what_would_pass_the_log_by_is_refused(outcomes: Outcomes, kind: str, statement: str) -> None:
    outcome = outcomes[kind][statement]
    assert outcome["error"] is not None
    assert "INTERNAL_ERROR" not in outcome["error"]
    assert outcome["added"] == []


def has_committed(outcome: dict[str, Any]) -> bool:
    return outcome["has created"] or any(file.startswith("_delta_log/") for file in outcome["added"])
