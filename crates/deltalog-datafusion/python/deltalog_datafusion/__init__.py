"""Delta tables in DataFusion: `context.register_table("trips", deltalog_datafusion.table("trips"))`.

deltalog's scan evaluates filters, and applies deletion vectors, column mapping and the other features of a table.
`INSERT INTO` and `INSERT OVERWRITE` are transactions.

DataFusion and this package are two binaries that share structures in memory. The layout of these structures changes
with each major version of DataFusion, and a different layout would crash the process. The version of this package
therefore begins with the major version of DataFusion that it works with, and it refuses to work with any other.
"""

import importlib.metadata
import os
from collections.abc import Mapping
from typing import Any

from deltalog import DeltaTable
from deltalog.arguments import store_argument
from deltalog.errors import UnsupportedFeatureError, hinted
from deltalog.extras import missing_extra
from deltalog_datafusion._datafusion import DATAFUSION_MAJOR, Table

__all__ = ["DATAFUSION_MAJOR", "TableProvider", "table"]


class TableProvider:
    """A table at one version, for `SessionContext.register_table`.

    All queries see the version that was opened. After an INSERT through this object, they see the version that the
    INSERT committed, or a later one. A query returns rows in no particular order.
    """

    def __init__(self, table: Table, location: str) -> None:
        self._table = table
        self._location = location

    @property
    def version(self) -> int:
        """The version that queries see."""
        return self._table.version

    def __datafusion_table_provider__(self, session: Any) -> object:
        """Returns the capsule that a session of DataFusion registers."""
        ensure_same_major()
        return self._table.capsule(session)

    def __repr__(self) -> str:
        return f"deltalog_datafusion.TableProvider({self._location!r}, version={self.version})"


def table(
    table: "DeltaTable | str | os.PathLike[str]", *, storage_options: Mapping[str, str] | None = None
) -> TableProvider:
    """Returns a table for a session of DataFusion.

    Args:
        table: the path or URL of a table, which is opened at its newest version, or a `DeltaTable`, which is opened
            again at its version.
        storage_options: the options of the store. Pass them for a `DeltaTable`, too, because it does not reveal its
            own options.

    Raises:
        ExtraRequiredError: DataFusion is not installed.
        UnsupportedFeatureError: another major version of DataFusion is installed, the table has a
            `credential_provider`, or deltalog cannot read the table.
        NotATableError: there is no table.
    """
    ensure_same_major()
    if isinstance(table, DeltaTable):
        opened, version = table, table.version()
    else:
        opened, version = DeltaTable(table, storage_options=storage_options), None
    if opened._credential_provider is not None:
        refused = UnsupportedFeatureError("a table with a credential_provider cannot be used in DataFusion")
        raise hinted(refused, "pass the path or URL of the table, and credentials as storage_options")
    snapshot = opened._opened.snapshot
    options = store_argument(snapshot.uri, storage_options, None).options
    made = Table.open(snapshot.uri, version, snapshot.table_id, options, snapshot.allowed_roots)
    return TableProvider(made, snapshot.uri)


def ensure_same_major() -> None:
    """Refuses every major version of DataFusion except the one that this package was compiled with.

    Raises:
        ExtraRequiredError: DataFusion is not installed.
        UnsupportedFeatureError: another major version is installed.
    """
    try:
        installed = importlib.metadata.version("datafusion")
    except importlib.metadata.PackageNotFoundError as error:
        install = f"pip install 'datafusion>={DATAFUSION_MAJOR},<{DATAFUSION_MAJOR + 1}'"
        problem = "deltalog_datafusion needs datafusion, which is not installed"
        raise missing_extra(problem, install) from error
    major = installed.partition(".")[0]
    if major != str(DATAFUSION_MAJOR):
        ours = importlib.metadata.version("deltalog-datafusion")
        refused = UnsupportedFeatureError(
            f"deltalog-datafusion {ours} works with DataFusion {DATAFUSION_MAJOR}, and DataFusion {installed} is "
            "installed"
        )
        raise hinted(refused, f"install deltalog-datafusion {major}.*, or datafusion {DATAFUSION_MAJOR}.*")
