"""The definition of a command, and arguments that several commands share."""

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = [
    "Arguments",
    "Parser",
    "Verb",
    "add_limit",
    "add_pairs",
    "add_table",
    "add_version",
    "columns_of",
    "open_table",
    "options_of",
    "pair",
    "version_or_time",
    "whole",
]

Arguments = argparse.Namespace


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` for wrong arguments, instead of ending the program."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{message}; see {self.prog} --help")


class Verb(NamedTuple):
    """A command."""

    define: Callable[[Parser], None]
    """Adds the command's arguments to a parser."""
    run: Callable[[Arguments, Output], int | None]
    """Runs the command. Returns the exit code, or None for 0."""
    examples: tuple[str, ...]
    """Examples of command lines. The tests run them, one after another."""
    details: str = ""
    """The part of the help after the summary."""
    has_arrow: bool = False
    """Whether the command can write its result as Arrow."""
    has_json: bool = True
    """Whether the command can print its result as JSON."""


def add_table(parser: Parser, help_text: str = "the path or URL of the table") -> None:
    """Adds the arguments for a table and the options with which it is opened."""
    parser.add_argument("table", metavar="TABLE", help=help_text)
    add_pairs(
        parser,
        "-o",
        "--option",
        help_text="an option of the store, such as aws_region=eu-west-1; set secrets in the environment instead",
    )
    parser.add_argument(
        "--allow-root",
        metavar="ROOT",
        action="append",
        default=[],
        help="another location that may contain files of the table, for shallow clones",
    )


def add_version(parser: Parser) -> None:
    """Adds the argument that chooses the version to read."""
    parser.add_argument(
        "--at",
        metavar="VERSION",
        type=version_or_time,
        help="read this version, or the version of this time (ISO 8601, in UTC if it has no zone); by default the "
        "newest version",
    )


def add_limit(parser: Parser, default: int | None, help_text: str) -> None:
    """Adds the argument for the maximum number of results."""
    parser.add_argument("-n", "--limit", metavar="N", type=whole, default=default, help=help_text)


def add_pairs(parser: Parser, *names: str, help_text: str, metavar: str = "KEY=VALUE") -> None:
    """Adds an argument that can be given several times, each time with a key and a value."""
    parser.add_argument(*names, metavar=metavar, action="append", default=[], type=pair, help=help_text)


def pair(text: str) -> tuple[str, str]:
    """Splits `KEY=VALUE`. An error message does not repeat the argument, because it may contain a secret."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError("expected KEY=VALUE")
    return key, value


def whole(text: str) -> int:
    """Parses a whole number that is not negative."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text!r}")
    return int(text)


def version_or_time(text: str) -> int | str:
    """Returns a version as a number. Any other string is returned unchanged, as a time."""
    return int(text) if text.isascii() and text.isdecimal() else text


_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]+?))\s*(?:,|$)")


def columns_of(texts: list[str] | None) -> list[str] | None:
    """Returns the names in lists such as `a,b`. Names that contain a comma are in backticks."""
    if not texts:
        return None
    names = []
    for text in texts:
        at = 0
        while at < len(text):
            found = _COLUMN.match(text, at)
            if found is None:
                raise UsageError(f"{text!r} is not a list of columns; write names with a comma in backticks")
            names.append(found[2] if found[1] is None else found[1].replace("``", "`"))
            at = found.end()
    return names


def options_of(arguments: Arguments) -> dict[str, str] | None:
    """Returns the storage options, or None if there are none."""
    return dict(arguments.option) or None


def open_table(arguments: Arguments, at: int | str | None = None) -> "DeltaTable":
    """Opens the table of a command at the version or time `at`, or else at the version or time of `--at`."""
    from deltalog.table import DeltaTable

    chosen: int | str | None = getattr(arguments, "at", None) if at is None else at
    return DeltaTable(
        arguments.table,
        version=chosen if isinstance(chosen, int) else None,
        timestamp=chosen if isinstance(chosen, str) else None,
        storage_options=options_of(arguments),
        allowed_roots=arguments.allow_root,
    )
