"""VACUUM: deleting the files that a table no longer needs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from deltalog import _internal
from deltalog.arguments import required_version
from deltalog.errors import wrong_argument
from deltalog.html import Facts
from deltalog.table.handle import TableHandle

__all__ = ["VacuumArguments", "VacuumPlan", "VacuumResult", "retention_argument", "versions_argument"]


class VacuumArguments(NamedTuple):
    """The arguments of `vacuum`, as the compiled module expects them."""

    retention: timedelta | None = None
    enforce_retention_duration: bool = True
    lite: bool = False
    inventory: object | None = None
    keep_versions: Sequence[int] = ()


@dataclass(frozen=True)
class VacuumResult(Facts):
    """The result of a VACUUM."""

    num_files: int
    size_in_bytes: int
    """The total size of the deleted files whose sizes are known."""
    num_directories: int
    """The number of directories that were removed because they had been empty for as long as the retention; only for
    local tables.
    """
    version: int
    """The version of the commit `VACUUM END`."""


class VacuumPlan(Facts):
    """The files that a table no longer needs, found by `DeltaTable.vacuum_plan`. Nothing is deleted yet."""

    def __init__(self, table: TableHandle, plan: _internal.VacuumPlan) -> None:
        self._table = table
        self._plan = plan

    @property
    def num_files(self) -> int:
        """The number of files."""
        return self._plan.num_files

    @property
    def size_in_bytes(self) -> int:
        """The total size of the files whose sizes are known."""
        return self._plan.size_in_bytes

    @property
    def version(self) -> int:
        """The version of the table for which the plan was made."""
        return self._plan.version

    @property
    def cutoff(self) -> datetime:
        """The time before which files are no longer retained, in UTC."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=self._plan.cutoff_ms)

    def paths(self) -> list[str]:
        """Returns the paths of the files, relative to the table's root, in no particular order."""
        return self._plan.paths()

    def files(self) -> _internal.ArrowStream:
        """Returns the files as an Arrow stream, one row per file, in no particular order.

        The columns are `path`, `size`, `modification_time`, and `reason`: `removed` (from the table, before the
        retention began), `unreferenced` (no version in the log needs it), `change data` or `deletion vector`. With
        `full=False` the time is when the file was removed, and the size of deletion vectors is 0.
        """
        return self._plan.files()

    def delete(self) -> VacuumResult:
        """Deletes the files, except for files that a commit has added to the table again in the meantime.

        The commit `VACUUM START` is made before the deletion, and `VACUUM END` after it. The table is then at the
        version of the second commit.

        Raises:
            DeltaError: some files may have been deleted. Run VACUUM again.
        """
        files, size, directories, version = self._plan.delete()
        self._table._has_committed(version)
        return VacuumResult(files, size, directories, version)

    def _facts(self) -> Iterator[tuple[str, object]]:
        for name in ("num_files", "size_in_bytes", "version", "cutoff"):
            yield name, getattr(self, name)

    def __repr__(self) -> str:
        return (
            f"VacuumPlan(num_files={self.num_files}, size_in_bytes={self.size_in_bytes}, version={self.version}, "
            f"cutoff={self.cutoff.isoformat()!r})"
        )


def versions_argument(keep_versions: object) -> list[int]:
    """Checks and returns the versions to keep; an empty list if the caller has passed None."""
    if keep_versions is None:
        return []
    if isinstance(keep_versions, (str, bytes)) or not isinstance(keep_versions, Iterable):
        raise wrong_argument("keep_versions", keep_versions, "a list of versions")
    return [required_version(version, "an item of keep_versions") for version in keep_versions]


def retention_argument(hours: float | timedelta | None) -> timedelta | None:
    """Returns the retention as a timedelta; the caller may pass a number of hours."""
    if hours is None or (isinstance(hours, timedelta) and hours >= timedelta(0)):
        return hours
    if isinstance(hours, (int, float)) and not isinstance(hours, bool) and 0 <= hours <= 1e7:
        return timedelta(hours=hours)
    raise wrong_argument("retention_hours", hours, "a timedelta or a number of hours from 0 to 1e7")
