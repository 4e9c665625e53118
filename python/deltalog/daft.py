"""Tables as frames of Daft: `deltalog.daft.read(table)`.

Daft gives its columns, filter and limit to the scan, whose tasks its workers read. Works from Daft 0.7.
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
    """Returns the rows of a table as a lazy frame of Daft.

    The frame keeps the version that is the newest now, or the version that a `DeltaTable` shows. Columns that a query
    does not use are not read, and neither are files and pages that cannot have a row of its filter. Rows are in any
    order.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        storage_options: the options of the store, for a path or URL, and for the workers. Daft sends them with the
            tasks; without them, workers take what their environment has.
        credential_provider: what returns credentials for the store, see `DeltaTable`. It is sent with the tasks, too.

    Raises:
        ExtraRequiredError: Daft is not installed.
        NotATableError: there is no table.
    """
    required("daft", "deltalog.daft", _INSTALL)
    required("daft.io.source", "deltalog.daft", _INSTALL)
    from deltalog.daft_data import TableSource

    frame: Any = TableSource(Parts.of(table, None, storage_options, credential_provider)).read()
    return frame
