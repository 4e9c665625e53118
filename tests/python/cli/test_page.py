"""docs/cli.md shows the current commands, and all its examples run."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog.cli.catalog import SUMMARIES, verb_of
from scripts import command_page


def test_the_page_is_that_of_the_commands() -> None:
    written = command_page.PAGE.read_text("utf-8")
    assert written == command_page.page(), "run python -m scripts.command_page"


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_examples_of_a_command_run(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = verb_of(name).examples
    assert any(example.split()[1] == name or f"deltalog {name}" in example for example in examples)
    for example in examples:
        code = command_page.carry_out(example)
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, ""), example
        # A check that finds no problems prints nothing.
        assert printed.out or ">" in example or name == "check", example


@pytest.mark.parametrize("name", SUMMARIES)
def test_help_has_the_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from deltalog.cli import main

    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    for example in verb_of(name).examples:
        assert example in text
    assert max(map(len, text.splitlines())) <= 120
