"""Refreshes rows of a table that Spark has cached, after a commit."""

from typing import Any

from deltalog.spark.jvm import Jvm
from deltalog.spark.write.outcome import after_commit


def refresh(jvm: Jvm, session: Any, uri: str, version: int | None) -> None:
    """Makes Spark recompute the cached rows of a table.

    `version` is the committed version, which errors then name; None if nothing was committed.
    """
    with after_commit(uri, version, "refreshing cached rows", "run REFRESH TABLE"):
        jvm.static("CachedTables", "refresh", session, uri)
