"""How every call from the JVM is answered:

with a value, or with the exception's stand-in, never by raising.
"""

from collections.abc import Callable
from typing import Any

from deltalog.spark.errors import keep
from deltalog.spark.jvm import Jvm


def answer(jvm: Jvm, serve: Callable[[list[Any]], Any], request: Any) -> Any:
    """Serves one request.

    Also an interrupt travels this way: the JVM must first unwind what the interrupted statement holds.
    """
    try:
        return serve(list(request))
    except BaseException as error:  # noqa: BLE001 (nothing may be raised across the wire)
        message = str(error) or type(error).__name__
        return jvm.new("DeltalogException", message, keep(error))
