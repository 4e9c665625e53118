"""Errors of jobs that fail because a row breaks a rule of the table."""

import re
from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.causes import causes

REFUSAL = "the table refuses a row: "
_MESSAGE = re.compile(re.escape(REFUSAL) + r"(.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


def error_of(java_exception: Any) -> InvalidArgumentError | None:
    """Returns the error for a job that failed because a row broke a rule; None for other exceptions."""
    for cause in causes(java_exception):
        found = _MESSAGE.search(cause.getMessage() or "")
        if found:
            return InvalidArgumentError(f"{REFUSAL}{found[1]}; nothing was committed")
    return None
