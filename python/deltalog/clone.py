"""CLONE: makes a new table from a version of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from deltalog.arguments import StoreOptions
from deltalog.html import Facts

__all__ = ["CloneArguments", "CloneResult"]


class CloneArguments(NamedTuple):
    """The arguments of `clone`, as the compiled module expects them."""

    shallow: bool
    mode: str
    configuration: dict[str, str]
    dry_run: bool = False
    source_name: str | None = None
    storage_options: StoreOptions | Mapping[str, str] | None = None


@dataclass(frozen=True)
class CloneResult(Facts):
    """The result of a CLONE."""

    metrics: dict[str, int]
    """The metrics under the JVM connector's names: `sourceTableSize`, `sourceNumOfFiles`, `numRemovedFiles`,
    `removedFilesSize`, `numCopiedFiles` and `copiedFilesSize`.
    """
    version: int | None
    """The version of the clone's commit; None if nothing was committed because nothing has changed."""
    allowed_roots: list[str]
    """The `allowed_roots` that readers of a shallow clone must pass."""
