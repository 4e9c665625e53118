"""The error of a MERGE in which several rows of the source match one row of the table (see `merge.py`)."""

from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.causes import causes

# The beginning of the error message in `ChangedRows.java`. Tasks raise the error, so Spark may add text around it.
_VIOLATION = "[MERGE_CARDINALITY_VIOLATION] several rows of the source match one row of the table"


def error_of(java_exception: Any) -> InvalidArgumentError | None:
    """Returns the error for a job that failed because of several matches; None for other exceptions."""
    for cause in causes(java_exception):
        if _VIOLATION in (cause.getMessage() or ""):
            return InvalidArgumentError(
                f"{_VIOLATION}, which could be updated or deleted more than once; nothing was committed. Keep one row "
                "of the source for each key, or make the condition stricter"
            )
    return None
