"""Keeps generated tables. A table is made if it is missing or was made with other parameters; otherwise it is used
again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Protocol

# The version of all generators. Increase it whenever the output of a generator changes.
GENERATION = 1


class TableSpec(Protocol):
    """A generator: the name of its directory, its parameters, and a method that creates the table."""

    @property
    def name(self) -> str: ...

    def parameters(self) -> dict[str, Any]: ...

    def write(self, table: Path) -> None:
        """Writes the table into the directory `table`, which must exist and be empty."""


def is_built(root: Path, spec: TableSpec) -> bool:
    stamp = root / f"{spec.name}.stamp"
    return (root / spec.name).is_dir() and stamp.is_file() and stamp.read_text() == _stamp(spec)


def build(root: Path, spec: TableSpec) -> Path:
    """Returns the table's directory. Creates the table first if necessary."""
    table = root / spec.name
    if is_built(root, spec):
        return table
    stamp, scratch = root / f"{spec.name}.stamp", root / f".{spec.name}.partial"
    stamp.unlink(missing_ok=True)
    for stale in (table, scratch):
        shutil.rmtree(stale, ignore_errors=True)
    scratch.mkdir(parents=True)
    spec.write(scratch)
    scratch.rename(table)
    stamp.write_text(_stamp(spec))
    return table


def _stamp(spec: TableSpec) -> str:
    return json.dumps({"generation": GENERATION, **spec.parameters()}, sort_keys=True) + "\n"
