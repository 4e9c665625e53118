"""What follows the commit of a change: the table moves to the new version."""

from typing import TYPE_CHECKING

from deltalog.errors import AfterCommitError, DeltaError

if TYPE_CHECKING:
    from deltalog.handle import TableHandle

__all__ = ["open_committed"]


def open_committed(table: "TableHandle", version: int) -> int:
    """Opens the newest version after a commit of `version`, and returns `version`."""
    try:
        table.update_incremental()
    except DeltaError as error:
        failure = AfterCommitError(
            f"the change was committed as version {version}, but the new version could not be opened: {error}"
        )
        failure.table, failure.version = table.table_uri, version
        raise failure from error
    return version
