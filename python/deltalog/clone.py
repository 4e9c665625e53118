"""CLONE: a version of a table becomes a table of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from deltalog.arguments import StoreOptions

__all__ = ["CloneArguments", "CloneResult"]


class CloneArguments(NamedTuple):
    """What the binary takes of the arguments of `clone`."""

    shallow: bool
    mode: str
    configuration: dict[str, str]
    dry_run: bool = False
    source_name: str | None = None
    storage_options: StoreOptions | Mapping[str, str] | None = None


@dataclass(frozen=True)
class CloneResult:
    """What a CLONE has done."""

    metrics: dict[str, int]
    """By the names of the JVM connector: `sourceTableSize`, `sourceNumOfFiles`, `numRemovedFiles`, `removedFilesSize`,
    `numCopiedFiles` and `copiedFilesSize`."""
    version: int | None
    """The version of the clone's commit; None if nothing was committed, because there was nothing to do."""
    allowed_roots: list[str]
    """What readers of a shallow clone must pass as `allowed_roots`."""
