"""The error of a MERGE whose source was lost together with the executor that stored it (see `merge.py`)."""

from typing import Any

from deltalog.errors import UnavailableError
from deltalog.spark.jvm.causes import causes

# This error condition is the same in every release of Spark 4. Spark's own hint is only for programs that create the
# checkpoint themselves.
_CONDITION = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND]"


def error_of(java_exception: Any, source: int) -> UnavailableError | None:
    """Returns the error for a job that needed a lost block of the source, which is the RDD with this id; None for other
    exceptions.

    The id is checked, because data that the user has cached on executors may be lost as well.
    """
    for cause in causes(java_exception):
        message = cause.getMessage() or ""
        if _CONDITION in message and f" rdd_{source}_" in message:
            error = UnavailableError(
                "the source of the MERGE was lost with the executor that kept it; nothing was committed. Run the "
                "statement again"
            )
            error.hint = "run the statement again"
            return error
    return None
