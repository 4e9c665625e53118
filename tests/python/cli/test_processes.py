"""Runs the command in its own process to test terminals, closed pipes, Ctrl-C, and which modules are imported."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake

COMMAND = [sys.executable, "-m", "deltalog"]


def environment(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    return kept | {"TERM": "xterm", **settings}


def in_terminal(arguments: list[str], **settings: str) -> str:
    """Runs a command in a pseudo-terminal, and returns its output."""
    import pty

    terminal, end = pty.openpty()
    ran = subprocess.Popen(
        [*COMMAND, *arguments], stdin=end, stdout=end, stderr=end, close_fds=True, env=environment(**settings)
    )
    os.close(end)
    shown = b""
    # On Linux, a read raises EIO when the command has closed the terminal.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    assert ran.wait(60) == 0, shown
    return shown.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", text)


def test_a_terminal_of_40_columns(place: Path) -> None:
    data = pa.table({"name": ["\x1b[31mred\x1b[0m and a long text that does not fit into a line"], "n": [1]})
    write_deltalake(place / "hostile", data)
    shown = in_terminal(["show", "hostile"], COLUMNS="40")
    assert "\x1b[31m" not in shown
    lines = plain(shown).splitlines()
    assert lines[2] == "\\x1b[31mred\\x1b[0m and a long text t…  1"
    assert max(map(len, lines)) == 40
    assert max(map(len, in_terminal(["info", "hostile"], COLUMNS="40", NO_COLOR="1").splitlines())) <= 40
    assert max(map(len, in_terminal(["optimize", "--help"], COLUMNS="40").splitlines())) <= 60


@pytest.mark.parametrize("settings", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color(place: Path, settings: dict[str, str]) -> None:
    assert "\x1b[1m" in in_terminal(["head", "trips"])
    assert "\x1b" not in in_terminal(["head", "trips"], **settings)


def test_arrow_is_not_written_to_a_terminal(place: Path) -> None:
    with pytest.raises(AssertionError, match="standard output is a terminal"):
        in_terminal(["head", "trips", "--arrow"])


def test_a_reader_that_ends_first(place: Path) -> None:
    """The command ends quietly if the reader of a pipe ends first, as in `deltalog show trips | head -1`."""
    write_deltalake(place / "many", pa.table({"i": range(300_000)}))
    for form in ("--json", "--arrow"):
        ran = subprocess.Popen(
            [*COMMAND, "show", "many", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert ran.stdout.read(10)
        ran.stdout.close()
        assert (ran.wait(60), ran.stderr.read()) == (141, b"")
        ran.stderr.close()


def test_output_that_cannot_be_written(place: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*COMMAND, "head", "trips"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert (ran.returncode, ran.stderr.count("\n")) == (7, 1)
    assert "No space left on device" in ran.stderr


def test_an_encoding_that_lacks_characters(place: Path) -> None:
    write_deltalake(place / "words", pa.table({"word": ["größer"]}))
    ran = subprocess.run(
        [*COMMAND, "show", "words"],
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii"),
        check=True,
    )
    assert b"gr\\xf6\\xdfer" in ran.stdout


@pytest.fixture
def following(place: Path) -> subprocess.Popen[str]:
    """Runs a command that follows a table from its newest version on."""
    return subprocess.Popen(
        [*COMMAND, "tail", "trips", "-n", "1", "-f", "--interval", "0.05", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def version(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(json.loads(process.stdout.readline())["version"])


def test_commits_are_printed_as_they_are_made(place: Path, following: subprocess.Popen[str]) -> None:
    with following:
        assert version(following) == 1
        for expected in (2, 3):
            write_deltalake("trips", pa.table({"city": ["Bern"], "km": [1.0]}), mode="append")
            assert version(following) == expected
        following.send_signal(signal.SIGINT)
        out, err = following.communicate(timeout=60)
    assert (following.returncode, out) == (130, "")
    assert err == "error: interrupted: nothing was committed\n"


def test_a_table_that_is_replaced_while_it_is_followed(place: Path, following: subprocess.Popen[str]) -> None:
    with following:
        assert version(following) == 1
        write_deltalake("other", pa.table({"i": [1]}))
        for number in range(3):
            write_deltalake("other", pa.table({"i": [number]}), mode="append")
        shutil.move("trips", "gone")
        shutil.move("other", "trips")
        out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err.count("\n")) == (4, "", 1)
    assert "Traceback" not in err


def test_help_imports_neither_the_binary_nor_the_package() -> None:
    heavy = {"deltalog._internal", "deltalog.errors", "dataclasses", "inspect", "json", "logging"}
    program = (
        "import sys\nfrom deltalog.cli import main\nmain(['--help'])\n"
        f"sys.exit(repr({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_reading_a_table_imports_no_other_library(place: Path) -> None:
    heavy = {"pyarrow", "numpy", "pandas", "urllib.request", "ssl", "rich", "asyncio"}
    program = (
        "import sys\nfrom deltalog.cli import main\ncode = main(['show', 'trips', '--json'])\n"
        f"sys.exit(repr({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else code)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
