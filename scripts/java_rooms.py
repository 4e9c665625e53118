"""Checks the layers of the Java sources, called rooms. Each folder is a room: a class uses only classes of its own
room and of the rooms below. `ROOMS` lists the rooms, the lowest first.

All folders belong to one package, so classes use each other without imports. The check looks for class names in the
code instead.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.order import Import, upward

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python/deltalog/spark/java"
ROOMS = {
    "internals": "access to internals of Spark that are made for Scala or hidden: case classes, fields, parts of plans",
    "bridge": "calls from Java to Python: an interface for each role",
    "loading": "loading of the jar in the driver, and the check that it fits this build of Spark",
    "vectors": "deletion vectors and their locations",
    "rows": "reading a file in a task: names, types, row numbers, selected rows",
    "rules": "rules for rows: constraints and other expressions, what they may contain, default values",
    "relation": "a version of a table as a relation of files: location, listing, filters",
    "stream": "tables as sources and sinks of streams",
    "catalog": "tables in Spark's analyzer: source, name, catalog entry, table and scan",
    "plan": "pruning, sizes and aggregates in Spark's planner",
    "write": "writes: conversion of rows to the table's schema, the job, its files and reports",
    "dml": "DELETE, UPDATE and MERGE",
    "clone": "CLONE, whose files tasks copy",
    "optimize": "OPTIMIZE and REORG, whose files tasks write",
    "sql": "definitions, writes and change feeds in SQL; directories of tables",
    "procedures": "procedures, and statements that Spark's grammar does not have",
    "session": "the parts of deltalog in a session: catalog, extensions, settings, rules, strategy",
}
# The pattern matches strings before comments, because a string may contain the beginning of a comment.
SKIPPED = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL
)
IMPORT = re.compile(r"^import .*$", re.MULTILINE)
# A name after a dot does not count: it is a member of another class, such as one of Spark's.
NAME = re.compile(r"(?<![\w.$])[A-Z]\w*")
DECLARED = re.compile(r"\b(?:class|interface|enum|record) (\w+)")


def code(file: Path) -> str:
    """Returns the code of a file without comments, string literals and imports."""
    return IMPORT.sub("", SKIPPED.sub(" ", file.read_text("utf-8")))


def rooms_of(files: list[Path], sources: Path) -> dict[str, str]:
    """Returns the rooms of all classes. A class that exists only for some releases is in the room of the class that it
    extends.
    """
    rooms = {file.stem: file.parent.name for file in files if file.relative_to(sources).parts[0] == "common"}
    for file in files:
        if file.stem not in rooms:
            extended = re.search(r"\bextends (\w+)", code(file))
            rooms[file.stem] = rooms.get(extended[1], "") if extended else ""
        if rooms[file.stem] not in ROOMS:
            sys.exit(
                f"{file.relative_to(sources)}: not in a room; add its folder to ROOMS of scripts/java_rooms.py"
            )
    return rooms


def imports(sources: Path = SOURCES) -> Iterator[Import]:
    """Yields a reference for each class of another room that a file names."""
    files = sorted(sources.rglob("*.java"))
    rooms = rooms_of(files, sources)
    for file in files:
        text = code(file)
        for name in sorted(rooms.keys() & set(NAME.findall(text)) - set(DECLARED.findall(text))):
            yield Import(str(file.relative_to(sources)), name, rooms[file.stem], rooms[name])


if __name__ == "__main__":
    if messages := list(upward(ROOMS, imports())):
        sys.exit("\n".join(messages))
