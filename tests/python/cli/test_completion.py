"""The scripts with which shells complete commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deltalog.cli.catalog import SUMMARIES
from tests.python.cli.conftest import Command


def completed(script: str, *words: str) -> set[str]:
    """Returns the completions that bash offers for the last of some words."""
    quoted = " ".join(f"'{word}'" for word in ("deltalog", *words))
    program = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _deltalog; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash(run: Command, place: Path) -> None:
    script = run("completion", "bash").out
    assert completed(script, "") == set(SUMMARIES)
    assert completed(script, "ch") == {"changes", "check", "checkpoint"}
    assert completed(script, "vacuum", "trips", "--de") == {"--delete"}
    assert completed(script, "vacuum", "tr") == {"trips"}
    assert {"--where", "--json", "--help"} <= completed(script, "show", "trips", "--")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_others(run: Command, shell: str) -> None:
    script = run("completion", shell).out
    for name, summary in SUMMARIES.items():
        assert name in script
        assert summary.replace("'", "") in script
    assert script.count("'") % 2 == 0
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True, check=True)


def test_a_shell_that_is_unknown(run: Command) -> None:
    ran = run("completion", "cmd")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
