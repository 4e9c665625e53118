"""Converts the errors of deltalog on a Connect server with deltalog's catalog to the exceptions of the client."""

import json
from collections.abc import Callable
from typing import Any

from deltalog.spark.exceptions import as_pyspark_error
from deltalog.spark.jvm.jars import PACKAGE
from deltalog.spark.sql_states import kind_of

_EXCEPTION = f"{PACKAGE}.DeltalogException"
_converted: set[Callable[..., Any]] = set()


def install_conversion() -> None:
    """Makes Spark's client raise deltalog's errors with their own classes. Other errors are converted as before. Later
    calls have no effect.
    """
    from pyspark.sql.connect.client import core

    client: Any = core
    convert = client.convert_exception
    if convert in _converted:
        return

    def convert_exception(info: Any, *arguments: Any, **named: Any) -> Any:
        error = convert(info, *arguments, **named)
        classes = json.loads(info.metadata.get("classes", "[]"))
        # An error with an error condition is Spark's own, and deltalog only passed it on. For other errors, the
        # condition is None, or empty in clients of Spark 4.0.
        is_own = _EXCEPTION in classes and not error.getCondition()
        kind = kind_of(error.getSqlState()) if is_own else None
        if kind is None:
            return error
        own = as_pyspark_error(kind(_message(str(error.getMessage()))))
        own.__cause__ = error
        return own

    _converted.add(convert_exception)
    client.convert_exception = convert_exception


def _message(text: str) -> str:
    """Returns a message without the name of the class with which Spark prefixes it."""
    return text.removeprefix(f"({_EXCEPTION}) ").partition("\n\nJVM stacktrace:")[0]
