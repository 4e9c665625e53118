"""The stores that tables are in."""

import os
from collections.abc import Mapping

from deltalog import _internal
from deltalog.arguments import location_argument, store_argument
from deltalog.credentials import CredentialProvider

__all__ = ["CredentialProvider", "check"]


def check(
    table_uri: "str | os.PathLike[str]",
    storage_options: Mapping[str, str] | None = None,
    *,
    credential_provider: CredentialProvider | None = None,
) -> None:
    """Checks that a store can hold tables: that it creates a file, refuses to create it again, and deletes it.

    Every commit relies on that: a store that replaces what it is asked to create loses commits, and nobody notices.
    The stores of Amazon, Google and Microsoft are known to be right. With any other, the first commit of a process
    tries it, too. The file is in the table's root, under a new name that begins with `.deltalog-check-`.

    Args:
        table_uri: where a table is, or is to be.
        storage_options, credential_provider: options and credentials of the store, see `DeltaTable`.

    Raises:
        UnsupportedFeatureError: the store replaces files. Tables in it would lose commits.
        AccessDeniedError: reading, writing or deleting is not permitted.
        UnavailableError: the store failed or gave no answer.
    """
    location = location_argument(table_uri)
    _internal.check_store(location, store_argument(location, storage_options, credential_provider))
