"""The stores that tables are in."""

import os
from collections.abc import Mapping

from deltalog import _internal
from deltalog.arguments import location_argument, options_argument

__all__ = ["check"]


def check(table_uri: "str | os.PathLike[str]", storage_options: Mapping[str, str] | None = None) -> None:
    """Checks that a store can hold tables: that it creates a file, refuses to create it again, and deletes it.

    Every commit relies on that: a store that replaces what it is asked to create loses commits, and nobody notices.
    The stores of Amazon, Google and Microsoft are known to be right. With any other, the first commit of a process
    tries it, too. The file is in the table's root, under a new name that begins with `.deltalog-check-`.

    Args:
        table_uri: where a table is, or is to be.
        storage_options: options of the store, see `DeltaTable`.

    Raises:
        UnsupportedFeatureError: the store replaces files. Tables in it would lose commits.
        AccessDeniedError: reading, writing or deleting is not permitted.
        UnavailableError: the store failed or gave no answer.
    """
    _internal.check_store(location_argument(table_uri), options_argument(storage_options, "a storage option"))
