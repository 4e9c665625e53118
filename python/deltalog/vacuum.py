"""VACUUM: deleting the files that a table no longer needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from deltalog import _internal
from deltalog.arguments import required_version, stream_argument
from deltalog.checked import checks_arguments
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument
from deltalog.handle import TableHandle

__all__ = ["TableVacuum", "VacuumArguments", "VacuumPlan", "VacuumResult", "retention_argument"]


class VacuumArguments(NamedTuple):
    """The arguments of `vacuum` that the binary gets."""

    retention: timedelta | None = None
    enforce_retention_duration: bool = True
    lite: bool = False
    inventory: object | None = None
    keep_versions: Sequence[int] = ()


@dataclass(frozen=True)
class VacuumResult:
    """The result of a VACUUM."""

    num_files: int
    size_in_bytes: int
    """Their size, as far as it is known."""
    num_directories: int
    """Directories that were removed because they had been empty for as long as the retention; only of local tables."""
    version: int
    """The version of the commit `VACUUM END`."""


class VacuumPlan:
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
        """Their size, as far as it is known."""
        return self._plan.size_in_bytes

    @property
    def version(self) -> int:
        """The version of the table that the plan was made for."""
        return self._plan.version

    @property
    def cutoff(self) -> datetime:
        """The time before which files are no longer retained, in UTC."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=self._plan.cutoff_ms)

    def paths(self) -> list[str]:
        """Returns the paths of the files, relative to the table's root, in no order."""
        return self._plan.paths()

    def files(self) -> _internal.ArrowStream:
        """Returns the files as an Arrow stream, one row per file, in no order.

        The columns are `path`, `size`, `modification_time`, and `reason`: `removed` (from the table, before the
        retention), `unreferenced` (no version that the log still has needs it), `change data` or `deletion vector`.
        With `full=False` the time is when the file was removed, and the size of deletion vectors is 0.
        """
        return self._plan.files()

    def delete(self) -> VacuumResult:
        """Deletes the files, except for those that the table needs again by now.

        Before that `VACUUM START` is committed, and afterwards `VACUUM END`, which is the version that the table is
        then at.

        Raises:
            DeltaError: some files may have been deleted. Run VACUUM again.
        """
        files, size, directories, version = self._plan.delete()
        self._table._has_committed(version)
        return VacuumResult(files, size, directories, version)

    def __repr__(self) -> str:
        return (
            f"VacuumPlan(num_files={self.num_files}, size_in_bytes={self.size_in_bytes}, version={self.version}, "
            f"cutoff={self.cutoff.isoformat()!r})"
        )


@checks_arguments
class TableVacuum(TableHandle):
    """VACUUM."""

    def vacuum(
        self,
        retention_hours: float | timedelta | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        full: bool = True,
        keep_versions: Sequence[int] | None = None,
        inventory: object | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> list[str]:
        """Deletes the files that the table no longer needs; by default, only returns which.

        A file is needed if it is a part of the newest version, or was removed from the table since the retention. Other
        files are deleted if they were written before the retention, so that files of unfinished writes are kept. Older
        versions can then no longer be read. Files and directories that begin with `_` or `.` are left alone, apart from
        `_change_data` and partitions, and so are other tables in the table's directory.

        Shallow clones of this table are unknown to it. If a clone elsewhere needs files that were removed here, a
        VACUUM breaks the clone.

        Args:
            retention_hours: how long files are kept after they were removed; without it the table's property
                `delta.deletedFileRetentionDuration`, or 7 days. It must be longer than the longest write and the
                longest query of an old version.
            dry_run: delete nothing.
            enforce_retention_duration: refuses a retention that is shorter than the table's.
            full: lists all files. Otherwise those are found that the log says were removed since the last VACUUM, but
                not those that a failed write has left.
            keep_versions: versions whose files are kept, however old they are.
            inventory: finds the files in an inventory of the store instead of listing it: an Arrow stream with the
                columns `path` (full paths, not encoded), `length`, `isDir` and `modificationTime` (milliseconds since
                the epoch, or a timestamp).
            commit_properties: what to record with the commits `VACUUM START` and `VACUUM END`.

        Returns: The paths of the files that were found, relative to the table's root, in no order. `vacuum_plan`
        returns their sizes and why each may be deleted.

        Raises:
            InvalidArgumentError: the retention is shorter than the table's, the inventory is of another place, or
                the table is pinned to a version.
            VersionNotFoundError: with `full=False`, the log does not reach back to the last VACUUM.
            UnsupportedFeatureError: the table cannot be written, a catalog manages it, or its retention is not a time
                span in weeks or smaller units.
            DeltaError: some files may have been deleted. Run VACUUM again.
        """
        plan = self.vacuum_plan(
            retention_hours,
            enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
            commit_properties=commit_properties,
        )
        paths = plan.paths()
        if not dry_run:
            plan.delete()
        return paths

    def vacuum_plan(
        self,
        retention_hours: float | timedelta | None = None,
        enforce_retention_duration: bool = True,
        *,
        full: bool = True,
        keep_versions: Sequence[int] | None = None,
        inventory: object | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> VacuumPlan:
        """Finds the files that the newest version of the table no longer needs, with sizes and reasons.

        Arguments and errors are the same as in `vacuum`. The plan can be inspected, and carried out with `delete()`.
        """
        if inventory is not None and not full:
            refused = InvalidArgumentError("an inventory stands for a listing of all files")
            raise hinted(refused, "pass full=True, or no inventory")
        versions = _versions(keep_versions)
        arguments = VacuumArguments(
            retention_argument(retention_hours),
            bool(enforce_retention_duration),
            not full,
            None if inventory is None else stream_argument(inventory, "inventory"),
            versions,
        )
        commit = commit_arguments(commit_properties)
        return VacuumPlan(self, _internal.plan_vacuum(self._newest_to_change(), arguments, commit))


def _versions(keep_versions: object) -> list[int]:
    if keep_versions is None:
        return []
    if isinstance(keep_versions, (str, bytes)) or not isinstance(keep_versions, Iterable):
        raise wrong_argument("keep_versions", keep_versions, "a list of versions")
    return [required_version(version, "an item of keep_versions") for version in keep_versions]


def retention_argument(hours: float | timedelta | None) -> timedelta | None:
    """Returns the retention, which may be a number of hours."""
    if hours is None or (isinstance(hours, timedelta) and hours >= timedelta(0)):
        return hours
    if isinstance(hours, (int, float)) and not isinstance(hours, bool) and 0 <= hours <= 1e7:
        return timedelta(hours=hours)
    raise wrong_argument("retention_hours", hours, "a timedelta or a number of hours from 0 to 1e7")
