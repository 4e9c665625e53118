"""Fixtures: the tables that examples use, and a function that runs commands in this process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deltalog.cli import main
from scripts.command_page import prepare


class Ran(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Returns the printed lines, parsed as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ran]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("prepared")
    prepare(place)
    return place


@pytest.fixture
def place(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a directory with the examples' tables, in which commands run."""
    copied = tmp_path / "place"
    shutil.copytree(prepared, copied)
    monkeypatch.chdir(copied)
    for name in ("COLUMNS", "NO_COLOR", "DELTALOG_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    return copied


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `deltalog` with these arguments."""

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return call
