"""Sends the commands of `DeltaTable` to a Connect server, and returns their answers.

    client                                          server
    options: command, arguments as JSON      →      answer(snapshot, command, arguments)
    value, or the same exception             ←      one row with one text: the value or the error as JSON

A server that uses deltalog's catalog can execute further commands in its session (`connect/commands.py`).
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import deltalog.errors
from deltalog._internal import (
    DeltaError,
    Snapshot,
)
from deltalog.spark.connect import copies
from deltalog.spark.options import Options
from deltalog.spark.sql.commands import COMMAND, answer

__all__ = ["ANSWER", "ARGUMENTS", "COMMAND", "answer_text", "portable_answer", "value_of"]

ARGUMENTS = "deltalog.arguments"
# The only column of an answer.
ANSWER = "answer"
_ATTRIBUTES = ("table", "version", "path", "line", "hint", "reason")


# Commands that only exist under Spark Connect. Their locations need not be tables yet.
_OF_PLACES: dict[str, Callable[..., Any]] = {"clone": copies.clone, "convert": copies.convert}


def portable_answer(
    options: Options, open_snapshot: Callable[[], Snapshot], command: str, arguments: dict[str, Any]
) -> Any:
    """Returns the result of a command in a server process without a session."""
    if command in _OF_PLACES:
        return _OF_PLACES[command](options, open_snapshot, **arguments)
    return answer(open_snapshot(), command, arguments)


def answer_text(execute: Callable[[str, dict[str, Any]], Any], command: str, arguments: str) -> str:
    """Calls `execute` for the command, and returns its result as text.

    If `execute` raises a `DeltaError`, the text describes the error, and the client raises it again.
    """
    try:
        return json.dumps(_encoded(execute(command, json.loads(arguments))))
    except DeltaError as error:
        attributes = {name: getattr(error, name) for name in _ATTRIBUTES}
        return json.dumps({"error": type(error).__name__, "message": str(error), **attributes})


def value_of(text: str) -> Any:
    """Returns the result in the text of `answer_text`, or raises the error in it."""
    answered = json.loads(text)
    if "error" not in answered:
        return _decoded(answered)
    error = getattr(deltalog.errors, answered["error"], DeltaError)(answered["message"])
    for name in _ATTRIBUTES:
        setattr(error, name, answered[name])
    raise error


def _encoded(value: Any) -> dict[str, Any]:
    """Returns a result as JSON. Values that JSON cannot express are encoded as an Arrow stream."""
    import pyarrow

    if isinstance(value, tuple):
        least, greatest = value
        return {"extremes": _encoded(pyarrow.table({"least": [least], "greatest": [greatest]}))["arrow"]}
    if not isinstance(value, pyarrow.Table):
        return {"json": value}
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, value.schema) as stream:
        stream.write_table(value)
    return {"arrow": base64.b64encode(sink.getvalue()).decode()}


def _decoded(answered: dict[str, Any]) -> Any:
    import pyarrow

    if "json" in answered:
        return answered["json"]
    stream = pyarrow.ipc.open_stream(base64.b64decode(answered.get("arrow") or answered["extremes"]))
    table = stream.read_all()
    if "arrow" in answered:
        return table
    [row] = table.to_pylist()
    return row["least"], row["greatest"]
