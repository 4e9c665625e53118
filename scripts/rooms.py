"""Checks that the rooms of the Spark layer import in one direction: a room may import only from rooms that `ROOMS`
lists before it.

A room is a folder of `python/deltalog/spark`, or a file beside these folders. All rooms may import modules of
`deltalog` that do not depend on Spark, but not `deltalog.tables`, the module from which users import `DeltaTable`.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.order import Import, upward

PACKAGE = Path(__file__).resolve().parent.parent / "python/deltalog"
SPARK = "deltalog.spark"
ROOMS = {
    "_requirements": "checks for required software",
    "sql_states": "SQLSTATEs of errors",
    "errors": "classes of errors",
    "exceptions": "errors that are also PySpark exceptions",
    "sources": "the tables from which a write reads its rows",
    "options": "options of readers and writers",
    "protocol_properties": "the protocol as properties of a table",
    "hadoop_settings": "settings of object stores",
    "schema": "schemas as JSON and Arrow",
    "secrecy": "options that may be secrets",
    "jvm": "the JVM: its classes, its calls, its exceptions",
    "location": "paths as Spark and as the core write them",
    "read": "scans of tables and of change data feeds",
    "write": "write jobs and their commits",
    "streams": "tables as sources and sinks of streams",
    "dml": "DELETE, UPDATE and MERGE",
    "sql": "definitions, changes and maintenance of tables",
    "connect": "Spark Connect: the client and the server",
    "failures": "errors that are passed through the JVM",
    "portable": "the Python data source",
    "tables": "`DeltaTable`, its builders and its verbs",
    "bridge": "calls from the JVM",
    "session": "`enable`",
    "sidecar": "the Python process for a JVM that no Python program has started",
    "configuration": "`configure`, and the path of the jar",
    "__main__": "the command line",
    "__init__": "what users import",
}


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Yields the modules of the Spark layer that a file imports, with the numbers of the lines."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if f"{name}.".startswith(f"{SPARK}."):
                yield node.lineno, name


def room_of(module: str, package: Path = PACKAGE) -> str:
    """Returns the room to which a module, or an item of a module, belongs."""
    first = module.removeprefix(SPARK).lstrip(".").split(".")[0]
    is_room = (package / "spark" / first).is_dir() or (package / "spark" / f"{first}.py").is_file()
    return first if first and is_room else "__init__"


def imports(package: Path = PACKAGE) -> Iterator[Import]:
    """Yields the imports of other rooms."""
    for file in sorted((package / "spark").rglob("*.py")):
        room = file.relative_to(package).parts[1].removesuffix(".py")
        if room not in ROOMS:
            sys.exit(f"{file}: the room {room} is not in ROOMS of scripts/rooms.py")
        for line, name in imported(file):
            yield Import(f"{file.relative_to(package)}:{line}", name, room, room_of(name, package))


def of_core(package: Path = PACKAGE) -> Iterator[str]:
    """Yields a message for each import of the Spark layer by a module outside of it, which must not depend on Spark."""
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] != "spark" and place.parts != ("tables.py",):
            yield from (f"{place}:{line}: imports {name} of Spark" for line, name in imported(file))


if __name__ == "__main__":
    if messages := [*of_core(), *upward(ROOMS, imports())]:
        sys.exit("\n".join(messages))
