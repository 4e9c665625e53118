"""Determines what a statement under Spark Connect reads in addition to the rows that it looks for.

Only the server resolves names, so the client does not know whether a name refers to the table. Every name that may
refer to it is treated as if it did: the statement then counts as having read the whole table, so more commits of other
writers are conflicts.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession

from deltalog.spark.connect.place import connect_uri
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.location import unescaped
from deltalog.spark.sql.names import PROVIDERS

_QUERY = re.compile(r"\b(select|table|from|values)\b|subquery", re.IGNORECASE)
# Relations without a table: rows from the client or the server, checkpoints, and generated rows.
_WITHOUT_TABLE = {"local_relation", "cached_local_relation", "cached_remote_relation", "range"}
_VERSION = "versionasof"
_AZURE = ("abfs", "az", "wasb")


class SourceReads(NamedTuple):
    """The parts of the target that the source of a MERGE may read."""

    reads_target: bool
    versions: list[int]
    """The versions of the target that the source certainly reads."""


def may_query(spark: SparkSession, value: str | Column) -> bool:
    """Returns whether a condition or a value may contain a subquery."""
    column: Any = value  # PySpark's common type for columns does not have the members of Connect's columns.
    text = value if isinstance(value, str) else str(column.to_plan(_client(spark)))
    return _QUERY.search(text) is not None


def plans_of(spark: SparkSession, value: str | Column) -> set[int]:
    """Returns the ids of the plans whose columns occur in a condition or a value; none for SQL text."""
    if isinstance(value, str):
        return set()
    column: Any = value
    messages = _messages(column.to_plan(_client(spark)))
    return {
        message.plan_id
        for message in messages
        if message.DESCRIPTOR.name == "UnresolvedAttribute" and message.HasField("plan_id")
    }


def source_reads(source: DataFrame, uri: str) -> SourceReads:
    """Returns what `source` may read from the table at `uri`."""
    frame: Any = source
    plan = frame._plan.to_proto(_client(source.sparkSession))
    reads, versions = False, []
    for message in _messages(plan):
        name = message.DESCRIPTOR.name
        if (name == "ExpressionString" and _QUERY.search(message.expression)) or name == "SubqueryExpression":
            reads = True
        elif name == "Relation" and not any(
            inner.DESCRIPTOR.name == "Relation" for inner in _messages(message) if inner is not message
        ):
            found = _leaf(message, uri)
            reads = reads or found is not False
            if isinstance(found, int) and not isinstance(found, bool):
                versions.append(found)
    return SourceReads(reads, versions)


def _leaf(relation: Any, uri: str) -> bool | int:
    """Returns the version of the table at `uri` that a relation without inputs reads, if its options name one.

    Otherwise returns whether it may read the table.
    """
    kind = str(relation.WhichOneof("rel_type"))
    if kind in _WITHOUT_TABLE or kind.endswith("cached_local_relation"):
        return False
    if kind != "read" or relation.read.WhichOneof("read_type") != "data_source":
        return True
    source = relation.read.data_source
    options = {name.lower(): value for name, value in source.options.items()}
    paths = [*source.paths, *([options["path"]] if "path" in options else [])]
    if source.format.lower() not in PROVIDERS:
        return False
    try:
        is_target = any(may_be(connect_uri(path), uri) for path in paths)
    except (InvalidArgumentError, UnsupportedFeatureError):  # The server will refuse this path.
        return True
    version = options.get(_VERSION, "")
    return int(version) if is_target and version.isdigit() else is_target


def may_be(other: str, uri: str) -> bool:
    """Returns whether a URL may be another spelling of the table's `uri`."""
    if other.startswith(_AZURE) and uri.startswith(_AZURE):
        # The account may be given by an option or by a setting of the server, so it is enough that the container is the
        # same.
        return _container(other) == _container(uri)
    return unescaped(other).rstrip("/") == unescaped(uri).rstrip("/")


def _container(uri: str) -> str:
    return re.split("[@/]", uri.partition("://")[2], maxsplit=1)[0]


def _messages(message: Any) -> Iterator[Any]:
    """Yields a protocol message and all messages nested in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if hasattr(value, "ListFields"):
            inner = [value]
        elif field.message_type.GetOptions().map_entry:
            inner = [entry for entry in value.values() if hasattr(entry, "ListFields")]
        else:
            inner = list(value)
        for each in inner:
            yield from _messages(each)


def _client(spark: SparkSession) -> Any:
    return spark.client
