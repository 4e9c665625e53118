"""Executes VACUUM on Spark. The driver lists and deletes the files with the core's own client for the store."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalog._internal import Snapshot, VacuumPlan, plan_vacuum
from deltalog.commit import commit_arguments
from deltalog.errors import InvalidArgumentError
from deltalog.spark.jvm.python_session import python_session
from deltalog.table.vacuum import VacuumArguments, retention_argument

if TYPE_CHECKING:
    import pyarrow

# The session settings of the JVM connector.
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
LITE = "spark.databricks.delta.vacuum.lite.enabled"

_COLUMNS = ("path", "length", "isDir", "modificationTime")


def plan(
    snapshot: Snapshot,
    retention_hours: float | None,
    user_metadata: str | None,
    *,
    enforces_retention: bool,
    is_lite: bool = False,
    inventory: Any = None,
) -> VacuumPlan:
    """Finds the files that the table no longer needs."""
    arguments = VacuumArguments(
        retention_argument(retention_hours), enforces_retention, is_lite, inventory, ()
    )
    return plan_vacuum(snapshot, arguments, commit_arguments(None, user_metadata))


def is_lite(mode: str | None, default: bool) -> bool:
    """Returns whether files are found only through the log."""
    if mode is None:
        return default
    if mode.upper() not in ("LITE", "FULL"):
        raise InvalidArgumentError(f"the type of a VACUUM is LITE or FULL, not {mode!r}")
    return mode.upper() == "LITE"


def inventory_of(session: Any, text: str) -> "pyarrow.Table":
    """Returns the rows of an inventory, which is the name of a table or a query in parentheses."""
    spark = python_session(session)
    query = text.strip()
    frame = spark.sql(query[1:-1]) if query.startswith("(") else spark.table(query)
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"the inventory has no column {missing[0]}: it needs {', '.join(_COLUMNS)}, and has {frame.columns}"
        )
    return frame.select(*_COLUMNS).toArrow()


def shown(snapshot: Snapshot, paths: list[str]) -> list[str]:
    """Returns full paths, as Hadoop shows them."""
    root = unquote(snapshot.uri).rstrip("/").replace("file:///", "file:/", 1)
    return [f"{root}/{path}" for path in paths]
