"""The list of the commands: the module of each, and its summary in one line.

`deltalog --help` imports only this list. A command also imports its own module.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.cli.verb import Verb

__all__ = ["GROUPS", "SUMMARIES", "verb_of"]

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at a table": {
        "info": ("describe", "say what a table is: location, size, features, properties"),
        "schema": ("describe", "print the columns and their rules"),
        "files": ("describe", "list the data files, or those that may match a condition"),
        "head": ("rows", "print the first rows"),
        "show": ("rows", "print rows"),
        "count": ("rows", "count rows"),
        "sql": ("query", "run a query over tables"),
    },
    "Look at its history": {
        "history": ("commits", "list the commits, newest first"),
        "log": ("commits", "print the actions of a commit"),
        "diff": ("difference", "compare two versions"),
        "tail": ("commits", "print the last commits, and follow the table"),
        "changes": ("rows", "print the rows that commits have inserted, updated and deleted"),
    },
    "Maintain it": {
        "check": ("health", "look for files that are missing or damaged"),
        "repair": ("health", "remove missing files from the log"),
        "vacuum": ("health", "delete files that the table no longer needs"),
        "optimize": ("layout", "replace small files by larger ones"),
        "zorder": ("layout", "order rows by several columns, so that filters skip files"),
        "cluster": ("layout", "cluster new files by the table's clustering columns"),
        "checkpoint": ("health", "write a checkpoint of the log"),
        "restore": ("health", "make an earlier version the newest one"),
    },
    "Move rows": {
        "append": ("exchange", "append rows from CSV, JSON lines, Parquet or Arrow"),
        "export": ("exchange", "write rows to such a file"),
    },
    "Define it": {
        "create": ("definition", "create a table"),
        "convert": ("copies", "turn a directory of Parquet files into a table"),
        "clone": ("copies", "copy a version to another location"),
        "alter": ("alteration", "change properties, columns, constraints or features"),
        "drop-feature": ("alteration", "drop a table feature"),
    },
    "Use it in a shell": {
        "completion": ("completion", "print a script that completes commands, for bash, zsh or fish"),
    },
}
"""By group and command: the module, and the summary."""

SUMMARIES = {name: summary for group in GROUPS.values() for name, (_, summary) in group.items()}


def verb_of(name: str) -> "Verb":
    """Returns a command."""
    from importlib import import_module

    (module,) = {group[name][0] for group in GROUPS.values() if name in group}
    verbs: dict[str, Verb] = import_module(f"deltalog.cli.verbs.{module}").VERBS
    return verbs[name]
