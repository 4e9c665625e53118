"""The commands of `DeltaTable`, and their execution by a Connect server.

    client                                          server
    options: command, arguments as JSON      →      answer(snapshot, command, arguments)
    value, or the same exception             ←      one row with one text: the value or the error as JSON

In a classic session, the same functions are called directly.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import deltalog.errors
from deltalog._internal import DeltaError, InvalidArgumentError, Snapshot, __version__

COMMAND = "deltalog.command"
ARGUMENTS = "deltalog.arguments"
# The only column of an answer.
ANSWER = "answer"
_ATTRIBUTES = ("table", "version", "path", "line", "hint", "reason")


def _version(snapshot: Snapshot) -> int:
    return snapshot.version


def _history(snapshot: Snapshot, limit: int | None) -> list[Any]:
    return [json.loads(commit) for commit in snapshot.history_json(limit)]


def _detail(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "format": "delta",
        "id": snapshot.table_id,
        "name": snapshot.name,
        "description": snapshot.description,
        "location": snapshot.uri,
        "createdAt": snapshot.created_time_ms,
        "lastModified": snapshot.timestamp_ms,
        "partitionColumns": list(snapshot.partition_columns),
        "clusteringColumns": [".".join(path) for path in snapshot.clustering_columns()],
        "numFiles": snapshot.num_files(),
        "sizeInBytes": snapshot.size_in_bytes(),
        "properties": dict(snapshot.configuration),
        "minReaderVersion": snapshot.min_reader_version,
        "minWriterVersion": snapshot.min_writer_version,
        "tableFeatures": sorted({*(snapshot.reader_features or ()), *(snapshot.writer_features or ())}),
    }


def _count(snapshot: Snapshot, condition: str | None, time_zone: str) -> int:
    return snapshot.count(condition, time_zone)


def _count_by_partition(snapshot: Snapshot, condition: str | None, time_zone: str) -> Any:
    """Returns the counts as a `pyarrow.Table`. The metadata of its schema has the table's schema as JSON."""
    import pyarrow

    counts = pyarrow.table(snapshot.count_by_partition(condition, time_zone))
    return counts.replace_schema_metadata({b"deltalog.schema": snapshot.schema_json.encode()})


def _min_max(
    snapshot: Snapshot, column: str, condition: str | None, time_zone: str
) -> tuple[Any, Any] | None:
    return snapshot.min_max(column, condition, time_zone)


_COMMANDS: dict[str, Callable[..., Any]] = {
    "version": _version,
    "history": _history,
    "detail": _detail,
    "count": _count,
    "countByPartition": _count_by_partition,
    "minMax": _min_max,
}


def answer(snapshot: Snapshot, command: str, arguments: dict[str, Any]) -> Any:
    """Returns the result of a command."""
    function = _COMMANDS.get(command)
    if function is None:
        raise InvalidArgumentError(
            f"{COMMAND} must be one of {', '.join(_COMMANDS)} in deltalog {__version__}, not {command!r}"
        )
    return function(snapshot, **arguments)


def answer_text(open_snapshot: Callable[[], Snapshot], command: str, arguments: str) -> str:
    """Returns the result as text, or the error as text, which the client raises again."""
    try:
        return json.dumps(_encoded(answer(open_snapshot(), command, json.loads(arguments))))
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
