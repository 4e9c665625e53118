"""Reads tables as Daft DataFrames: `deltalog.daft.read(table)`.

Daft passes the columns, the filter and the limit of a query to the scan, and its workers read the tasks of the scan.
Requires Daft 0.7 or newer.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltalog.conditions import Location
from deltalog.credentials import CredentialProvider
from deltalog.extras import required
from deltalog.parts import Parts

if TYPE_CHECKING:
    import daft

__all__ = ["read"]

_INSTALL = "pip install 'daft>=0.7'"


def read(
    table: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    credential_provider: CredentialProvider | None = None,
) -> "daft.DataFrame":
    """Returns the rows of a table as a lazy Daft DataFrame.

    The frame always has the rows of the same version: the newest one when it is created, or the version of the
    `DeltaTable`. Columns that a query does not use are not read, and neither are files and pages that cannot contain a
    row which its filter selects. The order of the rows is not defined.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        storage_options: storage options, if `table` is a path or URL, and for the workers. Daft sends them with the
            tasks. Without them, workers use the settings in their environment.
        credential_provider: provides credentials for the store, see `DeltaTable`. Daft sends the provider with the
            tasks, too.

    Raises:
        ExtraRequiredError: Daft is not installed.
        NotATableError: there is no table.
    """
    required("daft", "deltalog.daft", _INSTALL)
    required("daft.io.source", "deltalog.daft", _INSTALL)
    from deltalog.daft_data import TableSource

    frame: Any = TableSource(Parts.of(table, None, storage_options, credential_provider)).read()
    return frame
