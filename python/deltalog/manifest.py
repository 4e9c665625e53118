"""Manifests of a table for engines that do not read Delta tables."""

from deltalog import _internal
from deltalog.checked import checks_arguments
from deltalog.errors import wrong_argument
from deltalog.handle import TableHandle

__all__ = ["TableManifests", "generate"]

_MODE = "symlink_format_manifest"


def generate(snapshot: _internal.Snapshot, mode: str = _MODE) -> int:
    """Writes the manifests of the newest version. Returns this version."""
    if mode.lower() != _MODE:
        raise wrong_argument("mode", mode, f"{_MODE!r}, the only mode there is")
    version, _, _ = _internal.generate_manifests(snapshot)
    return version


@checks_arguments
class TableManifests(TableHandle):
    """Manifests."""

    def generate(self, mode: str = _MODE) -> int:
        """Writes manifests of the files of the newest version, for Presto, Athena and others that read Hive's format.

        They are in `_symlink_format_manifest/`, one for each partition that has files, with one full path per
        line; manifests of other partitions are deleted. With the table property
        `delta.compatibility.symlinkFormatManifest.enabled` each commit brings them up to date, and if that fails
        there is a warning in the log. A client other than deltalog and the JVM connector does not do so.

        Args:
            mode: `symlink_format_manifest`, in upper or lower case.

        Returns:
            The version that the manifests show.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
            UnsupportedFeatureError: the table has column mapping, or files with deletion vectors, which such engines
                would read as if no row were deleted; or a partition value is too long for the name of a directory.
            DeltaError: some manifests may describe an older version. Generate them again.
        """
        return generate(self._newest_to_change(), mode)
