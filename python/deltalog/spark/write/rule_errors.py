"""The errors for expressions of tables that are not allowed (`RuleExpression.java`)."""

import base64
import json
import re
from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.causes import causes

_IN_MESSAGE = re.compile(r"raise_error\('deltalog refuses ([\w+/=]+)'\)")

_WHAT = {
    "constraint": "the constraint '{name}'",
    "generated": "the generated column '{name}'",
    "default": "the default value of the column '{name}'",
}
_HINTS = {
    "constraint": "drop the constraint, or replace it with one that can be evaluated",
    "generated": "write to a table whose owner has changed the expression",
    "default": "give a value for the column, or change its default value with ALTER TABLE … ALTER COLUMN … SET DEFAULT",
}


def of_json(refusal: str) -> InvalidArgumentError:
    """Returns the error that `RuleRefusal.java` describes."""
    table, kind, name, sql, reason = json.loads(refusal)
    return InvalidArgumentError(
        f"{_WHAT[kind].format(name=name)} ({sql}) of the table {table} cannot be evaluated: {reason}. Such an "
        "expression may only contain columns of the table, constants, operators, and deterministic built-in functions; "
        f"{_HINTS[kind]}"
    )


def error_of(java_exception: Any) -> InvalidArgumentError | None:
    """Returns the error if Spark needs a default value that is not allowed; None for other exceptions."""
    for cause in causes(java_exception):
        if found := _IN_MESSAGE.search(cause.getMessage() or ""):
            try:
                return of_json(base64.b64decode(found[1]).decode())
            except (ValueError, TypeError, KeyError):
                continue  # The message may only look like a refusal, because Spark's errors can contain data.
    return None
