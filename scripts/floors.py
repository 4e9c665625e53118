"""Checks that the folders of the core are layers, called floors: a folder imports only from folders that `FLOORS`
lists before it, and the folders inside a floor do not import each other in a circle. Tests may import anything.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.order import Import, circles, upward

SOURCES = Path(__file__).resolve().parent.parent / "crates/deltalog/src"
FLOORS = {
    "error": "errors: what failed, in which table, and what to do",
    "limits": "upper limits for sizes and numbers that files claim",
    "runtime": "clock and ids, threads, progress, stopping a call, names and sizes",
    "protocol": "actions, schema, features, properties, paths; no I/O",
    "expression": "predicates, SQL expressions, constraints and other rules for rows; no I/O",
    "values": "statistics and footers of files, conversions, legacy encodings of dates; no I/O",
    "storage": "all I/O goes through it: local files, clouds, HDFS, caches, coordinators",
    "log": "the files of the log, and the state computed from them",
    "snapshot": "a table at one version, its newest version, its history",
    "scan": "the files of a version and their rows; the change data feed",
    "write": "rows become data files",
    "commit": "transactions, conflict rules, the commit loop",
    "upkeep": "files written after a commit: checkpoints, checksums, compactions, manifests",
    "operations/rewrite": "code shared by operations: finding rows in files, rewriting files",
    "operations/define": "creating tables and changing their schema, properties and features",
    "operations/maintain": "OPTIMIZE, VACUUM, RESTORE, statistics, repair",
    "operations/insert": "appends and overwrites, by one process or several",
    "operations/dml": "DELETE, UPDATE and MERGE",
    "operations/exchange": "CONVERT and CLONE",
    "operations/stream": "a table as a stream of batches",
}
ROOT = {"lib.rs", "engine.rs", "operations/mod.rs"}
TEST_FILE = re.compile(r"(^|/)(\w+_tests?|tests?|testing|test_table)(\.rs|/)")
PATH = re.compile(r"(?<![\w$:])(?:crate|super)(?:(?:::\w+)+|(?=::))")
# Circles are allowed here, because the protocol's actions, features and schema refer to each other.
CIRCLES = {"protocol"}


@dataclass(frozen=True)
class CoreImport(Import):
    """A path to an item of the crate, in code that is not a test."""

    file: str
    target: str
    """The module to which the path refers."""


def floor_of(module: str) -> str | None:
    """Returns the floor of a module or file, given by its path below the sources. The root of the crate is on no
    floor.
    """
    parts = module.removesuffix(".rs").split("/")
    return next((name for name in ("/".join(parts[:2]), parts[0]) if name in FLOORS), None)


def code(file: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines of a file with their numbers, without comments and without code that is only for tests."""
    skipped: str | None = None
    for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
        indentation = line[: len(line) - len(line.lstrip())]
        if skipped is None and re.match(r"\s*#\[cfg\((all\()?test\b", line):
            skipped = indentation
        elif skipped is None:
            yield number, re.sub(r"//.*", "", line)
        elif line and (indentation < skipped or (indentation == skipped and line.endswith((";", "}", ",")))):
            skipped = None


def imports(sources: Path = SOURCES) -> Iterator[CoreImport]:
    """Yields the imports of all files that belong to a floor."""
    for source in sorted(sources.rglob("*.rs")):
        file = source.relative_to(sources).as_posix()
        importer = floor_of(file)
        if file in ROOT or TEST_FILE.search(file):
            continue
        if importer is None:
            sys.exit(
                f"{file}: the file does not belong to a floor; add its folder to FLOORS in scripts/floors.py"
            )
        module = file.removesuffix("/mod.rs").removesuffix(".rs").split("/")
        for number, line in code(source):
            for found in PATH.finditer(line):
                names = found[0].split("::")
                ups = names.count("super")
                target = "/".join([*module[: len(module) - ups], *names[ups:]] if ups else names[1:])
                place = f"crates/deltalog/src/{file}:{number}"
                yield CoreImport(place, found[0], importer, floor_of(target), file, target)


def folder_imports(found: Iterable[CoreImport], sources: Path = SOURCES) -> dict[tuple[str, str], Import]:
    """Returns one import for each pair of folders of the same floor in which the first folder imports from the
    second.
    """
    edges: dict[tuple[str, str], Import] = {}
    for each in found:
        if each.imported == each.importer and each.imported not in CIRCLES:
            depth = each.importer.count("/") + 2
            rooms = ["/".join(path.split("/")[:depth]) for path in (each.file, each.target)]
            if rooms[0] != rooms[1] and all((sources / room).is_dir() for room in rooms):
                edges.setdefault((rooms[0], rooms[1]), each)
    return edges


if __name__ == "__main__":
    listed = list(imports())
    if messages := [*upward(FLOORS, listed), *circles(folder_imports(listed))]:
        sys.exit("\n".join(messages))
