"""The list of all commands: for each, its module and a summary in one line.

`deltalog --help` needs only this list. To run a command, its module is imported, too.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.cli.verb import Verb

__all__ = ["GROUPS", "SUMMARIES", "verb_of"]

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at a table": {
        "info": ("describe", "print what a table is: location, size, features, properties"),
        "schema": ("describe", "print the columns and their rules"),
        "files": ("describe", "list the data files, or those that may match a condition"),
        "head": ("rows", "print the first rows"),
        "show": ("rows", "print rows"),
        "count": ("rows", "count rows"),
        "sql": ("query", "run a query over tables"),
    },
    "Look at its history": {
        "history": ("commits", "list the commits, newest first"),
        "log": ("commits", "print the actions of one commit"),
        "diff": ("difference", "compare two versions"),
        "tail": ("commits", "print the last commits, and new commits as they are made"),
        "plot": (
            "pictures",
            "plot file sizes, file overlap, the growth of the table, or its commits over time",
        ),
        "changes": ("rows", "print the rows that commits inserted, updated and deleted"),
    },
    "Maintain it": {
        "check": ("health", "look for missing and damaged files"),
        "repair": ("health", "remove missing files from the log"),
        "vacuum": ("health", "delete files that the table no longer needs"),
        "optimize": ("layout", "combine small files into larger ones"),
        "zorder": ("layout", "sort rows by several columns, so that filters can skip files"),
        "cluster": ("layout", "sort the rows of new files by the table's clustering columns"),
        "checkpoint": ("health", "write a checkpoint of the log"),
        "restore": ("health", "make an earlier version the newest one"),
    },
    "Move rows": {
        "append": ("exchange", "append rows from CSV, JSON lines, Parquet or Arrow"),
        "export": ("exchange", "write rows as CSV, JSON lines, Parquet or Arrow"),
    },
    "Define it": {
        "create": ("definition", "create a table"),
        "convert": ("copies", "turn a directory of Parquet files into a table"),
        "clone": ("copies", "copy a version to another location"),
        "alter": ("alteration", "change properties, columns, constraints or table features"),
        "drop-feature": ("alteration", "drop a table feature"),
    },
    "Use it in a shell": {
        "completion": ("completion", "print the completion script for bash, zsh or fish"),
    },
}
"""The commands by group. Each has a module in `verbs`, and a summary."""

SUMMARIES = {name: summary for group in GROUPS.values() for name, (_, summary) in group.items()}


def verb_of(name: str) -> "Verb":
    """Returns the command with this name. Imports its module."""
    from importlib import import_module

    (module,) = {group[name][0] for group in GROUPS.values() if name in group}
    verbs: dict[str, Verb] = import_module(f"deltalog.cli.verbs.{module}").VERBS
    return verbs[name]
