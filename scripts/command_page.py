"""Writes docs/cli.md: every command with its options and examples.

The page comes from the parsers. The examples are run, and where their output is the same everywhere, it is shown.
`--check` only compares the page.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from deltalog import DeltaTable, write_deltalake
from deltalog.cli import main as run
from deltalog.cli.catalog import GROUPS, SUMMARIES, verb_of
from deltalog.cli.failures import EXPLAINED
from deltalog.cli.parsing import parser_of
from deltalog.cli.verb import Parser, Verb

__all__ = ["PAGE", "carry_out", "page", "prepare"]

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

START = """\
# The command line

The wheel has a command, `deltalog`. `python -m deltalog` is the same.

```console
{session}```

- **Tables** are given by their path or URL, as in Python. `-o KEY=VALUE` sets an [option of the store](stores.md). Set
  secrets in the environment instead, because other users of the machine can see command lines.
- **Output** is a table for people. `--json` prints one JSON object per line, and `--arrow` writes an Arrow IPC stream.
  In a terminal, long values are cut off to fit its width, and end with `…`; in a pipe, nothing is cut off. Set
  `NO_COLOR` to turn colors off. Control characters in names and values are escaped, so that an untrusted table cannot
  control the terminal.
- **JSON** has decimals with all digits, times in the format of RFC 3339, bytes as hexadecimal text, and `"NaN"`,
  `"Infinity"` and `"-Infinity"` as text.
- **Messages** are written to standard error: warnings always, and the progress of long operations in a terminal. An
  error is one line.
- **Nothing is deleted by default.** `vacuum` deletes only with `--delete`, and `repair` commits only with `--commit`.
  Commands that rewrite files have `--dry-run`.

| exit code | meaning |
| --- | --- |
{codes}

The script `scripts/command_page.py` wrote this page, and ran every example.
"""

SESSION = (
    "deltalog schema trips",
    "deltalog show trips --where \"city = 'Oslo'\"",
    "deltalog count trips",
    "deltalog show trips --where 'km > 10' --json --at 0",
    "deltalog show nothing",
)
"""The commands at the beginning of the page, whose output is the same everywhere."""


def prepare(place: Path) -> None:
    """Makes the tables of the examples in a directory."""
    trips = pa.table({"city": ["Oslo", "Rome", "Oslo"], "km": [4.5, 12.0, 7.5]})
    write_deltalake(place / "trips", trips, partition_by=["city"])
    write_deltalake(place / "trips", pa.table({"city": ["Rome"], "km": [1.5]}), mode="append")
    orders = DeltaTable.create(
        place / "orders",
        pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2))]),
        configuration={"delta.enableChangeDataFeed": "true", "delta.feature.changeDataFeed": "supported"},
    )
    write_deltalake(
        orders, pa.table({"id": [1, 2], "price": [Decimal("1.10"), Decimal("2.20")]}), mode="append"
    )
    orders.delete("id = 1")
    write_deltalake(place / "events", pa.table({"day": [3, 1, 2], "what": ["a", "b", "c"]}))
    (place / "logs" / "day=2026-11-24").mkdir(parents=True)
    pyarrow.parquet.write_table(
        pa.table({"line": ["a", "b"]}), place / "logs" / "day=2026-11-24" / "part.parquet"
    )


def carry_out(command: str) -> int:
    """Runs a line of an example in this process: commands, pipes between them, and output into a file."""
    code, given = 0, b""
    for part in _split(command, "|"):
        words = list(part)
        target = Path(words.pop()) if len(words) > 2 and words[-2] == ">" else None
        if target is not None:
            words.pop()
        if words[0] != "deltalog":
            raise ValueError(f"{command} is not a command of deltalog")
        code, given = _captured(words[1:], given)
        if target is not None:
            target.write_bytes(given)
            given = b""
    sys.stdout.write(given.decode())
    return code


def _split(command: str, mark: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in shlex.split(command):
        if word == mark:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _captured(words: list[str], given: bytes) -> tuple[int, bytes]:
    """Runs a command with these bytes as its standard input, and returns its exit code and its output."""
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), "utf-8")
    try:
        with contextlib.redirect_stdout(printed):
            code = run(words)
    finally:
        sys.stdin = before
    return code, printed.buffer.getvalue()


def _session() -> str:
    """Returns commands and what they print, in a directory of their own."""
    lines = []
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        prepare(Path(place))
        for command in SESSION:
            printed = io.StringIO()
            with contextlib.redirect_stderr(printed):
                _, output = _captured(shlex.split(command)[1:], b"")
            said = (output.decode() + printed.getvalue()).replace(
                f"file://{os.path.realpath(place)}", "file:///data"
            )
            lines.append(f"$ {command}\n{said}")
    return "".join(lines)


def page() -> str:
    """Returns the page."""
    codes = "\n".join(f"| {code} | {text} |" for code, text in EXPLAINED.items())
    parts = [START.format(session=_session(), codes=codes)]
    for title, verbs in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_described(name, verb_of(name)) for name in verbs]
    return "\n".join(parts)


def _described(name: str, verb: Verb) -> str:
    parser = parser_of(name, verb)
    summary = SUMMARIES[name]
    text = " ".join(f"{summary[0].upper()}{summary[1:]}. {verb.details}".split())
    examples = "".join(f"$ {example}\n" for example in verb.examples)
    rows = "\n".join(f"| {_spelled(action)} | {_cell(action.help or '')} |" for action in _actions(parser))
    table = f"| argument | what it does |\n| --- | --- |\n{rows}\n"
    return f"### {name}\n\n{_wrapped(text)}\n\n```console\n{examples}```\n\n{table}"


def _actions(parser: Parser) -> list[argparse.Action]:
    """Returns the arguments, without those that all commands have."""
    return [
        action for action in parser._actions if action.dest not in ("help", "option", "allow_root", "form")
    ]


def _spelled(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else None
    if action.choices is not None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{metavar}`" if action.nargs != "?" else f"`[{metavar}]`"
    return ", ".join(
        f"`{option}{'' if action.nargs == 0 else f' {metavar}'}`" for option in action.option_strings
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("%%", "%")


def _wrapped(text: str) -> str:
    """Breaks lines, but none within code."""
    import textwrap

    hidden = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.fill(hidden, 120, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def main() -> None:
    written = page()
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text("utf-8") != written:
            sys.exit("docs/cli.md does not show the commands as they are: run python -m scripts.command_page")
        return
    PAGE.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
