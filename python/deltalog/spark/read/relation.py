"""Describes versions of tables as relations of Spark, which are read by Spark's own Parquet scan over files that the
core selects.

Each relation is described by one JSON string, from which `RelationDescription.java` builds it.
"""

import json
from typing import Any

from pyspark.sql.types import StructType

from deltalog._internal import Snapshot, SparkChanges
from deltalog.arguments import ChangeRange, milliseconds
from deltalog.spark import protocol_properties
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, last_location, location_of, uri_of
from deltalog.spark.options import Options, whole_number
from deltalog.spark.read.format import file_format
from deltalog.spark.read.planner import ChangesPlanner, Planner, key_of, register
from deltalog.spark.schema import CHANGE_FIELDS, bare_columns, feed_schema, of_query, with_fields


def open_snapshot(jvm: Jvm, session: Any, options: Options) -> Snapshot:
    """Opens the version that the options specify, or the newest."""
    options.check_read()
    if options.wants_row_ids:
        raise InvalidArgumentError(
            "rowIds only works under Spark Connect: here select _metadata.row_id and _metadata.row_commit_version"
        )
    return opened(jvm, session, options, location_of(jvm, session, options))


def opened(jvm: Jvm, session: Any, options: Options, location: Location) -> Snapshot:
    """Does the same as `open_snapshot`, for a location and options that were already checked."""
    version, timestamp_ms = _version(options), _timestamp(jvm, session, options)
    return Snapshot.open(
        location.uri,
        version=version,
        timestamp_ms=timestamp_ms,
        storage_options=location.storage_options,
        allowed_roots=roots_of(jvm, session, options),
    )


def open_changes(jvm: Jvm, session: Any, options: Options) -> SparkChanges:
    """Opens the changes in the versions that the options specify."""
    options.check_read()
    location = location_of(jvm, session, options)
    roots = roots_of(jvm, session, options)
    newest = Snapshot.open(location.uri, storage_options=location.storage_options, allowed_roots=roots)
    start, end = (bound_of(jvm, session, options, name) for name in ("starting", "ending"))
    return newest.spark_changes(ChangeRange(start[0], end[0], start[1], end[1]))


def roots_of(jvm: Jvm, session: Any, options: Options) -> list[str]:
    """Returns the URLs of the directories outside the table that may contain data files."""
    return [uri_of(jvm, session, root) for root in options.allowed_roots]


def changes_relation(session: Any, changes: SparkChanges) -> str:
    """Describes a relation of the changed rows, in the schema of the last version."""
    snapshot = changes.snapshot
    label = "changes of v{} to v{}".format(*(changes.versions or ("?", "?")))
    return json.dumps(
        {
            "uri": snapshot.uri,
            "isInReach": last_location(snapshot.uri).obstacle is None,
            "label": label,
            "identity": f"{snapshot.uri} {label}#{snapshot.table_id}",
            "planner": register(ChangesPlanner(changes)),
            "schema": feed_schema(snapshot),
            "partitionSchema": with_fields(partition_schema(snapshot), CHANGE_FIELDS[1:]),
            "format": file_format(session, snapshot, is_change_feed=True),
        }
    )


def snapshot_relation(session: Any, snapshot: Snapshot) -> str:
    """Returns the description, as JSON, of the relation that reads the rows of `snapshot`."""
    return json.dumps(_rows(session, snapshot))


def table_state(session: Any, snapshot: Snapshot) -> str:
    """Describes the state of a table version for our catalog (`TableState.java`)."""
    properties = dict(snapshot.configuration)
    if snapshot.description is not None:
        properties["comment"] = snapshot.description
    return json.dumps(
        {
            "relation": _rows(session, snapshot),
            "properties": properties,
            "protocol": protocol_properties.shown(snapshot),
            "columns": snapshot.schema_json,
            "clustering": snapshot.clustering_columns(),
        }
    )


def reopened_relation(jvm: Jvm, session: Any, key: str, options: Options) -> str:
    """Describes a relation of the version that the planner with this key reads, opened with the options of a query."""
    options.check_read()
    if options.wants_changes:
        raise InvalidArgumentError(
            "a change data feed has its own range of versions: use startingVersion and endingVersion instead of a "
            f"version of the table (table {options.path})"
        )
    table = key_of(key).table
    roots = roots_of(jvm, session, options) or table.allowed_roots
    return snapshot_relation(session, table._replace(allowed_roots=tuple(roots)).open())


def statement_relation(session: Any, snapshot: Snapshot, key: str, statement: str) -> str:
    """Describes a relation of the files that a statement reads to change rows; `key` belongs to their planner."""
    return json.dumps(
        {
            "uri": snapshot.uri,
            "isInReach": last_location(snapshot.uri).obstacle is None,
            "label": f"v{snapshot.version} for {statement}",
            "identity": key,
            "planner": key,
            "schema": of_query(snapshot),
            "partitionSchema": partition_schema(snapshot),
            "format": file_format(session, snapshot, is_for_statement=True),
        }
    )


def _rows(session: Any, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "uri": snapshot.uri,
        "isInReach": last_location(snapshot.uri).obstacle is None,
        "label": f"v{snapshot.version}",
        "identity": f"{snapshot.uri}@{snapshot.version}#{snapshot.table_id}",
        "planner": register(Planner(snapshot)),
        "schema": of_query(snapshot),
        "partitionSchema": partition_schema(snapshot),
        "format": file_format(session, snapshot),
    }


def check_expected_schema(snapshot: Snapshot, expected: Any) -> None:
    """Raises an error if the schema passed by the caller is not the table's, ignoring nullability and metadata.

    A Delta table is never read with another schema.
    """
    check_expected_columns(snapshot, expected.json())


def check_expected_columns(snapshot: Snapshot, expected: str) -> None:
    """Does the same as `check_expected_schema`, for a schema in JSON."""
    wanted, actual = bare_columns(expected), bare_columns(snapshot.schema_json)
    if sorted(wanted, key=str) != sorted(actual, key=str):
        raise InvalidArgumentError(
            f"the schema {StructType.fromJson(json.loads(expected)).simpleString()} does not match the schema of the "
            f"Delta table {snapshot.uri} at version {snapshot.version}: omit the schema to use the table's"
        )


def partition_schema(snapshot: Snapshot) -> str:
    """Returns the partition columns of the relation."""
    fields = {field["name"]: field for field in json.loads(of_query(snapshot))["fields"]}
    return json.dumps({"type": "struct", "fields": [fields[name] for name in snapshot.partition_columns]})


def _version(options: Options, name: str = "versionAsOf") -> int | None:
    text = options.values.get(name.lower())
    if text is None:
        return None
    version = whole_number(text)
    if version is None:
        raise InvalidArgumentError(f"{name} must be a version number, not {text!r}")
    return version


def bound_of(jvm: Jvm, session: Any, options: Options, end: str) -> tuple[int | None, int | None]:
    """Returns the version and the timestamp at which the changes begin or end; at least one of them is None."""
    text = options.values.get(f"{end}timestamp")
    return _version(options, f"{end}Version"), None if text is None else _milliseconds(
        jvm, session, f"{end}Timestamp", text
    )


def _timestamp(jvm: Jvm, session: Any, options: Options) -> int | None:
    # Java sets this option for TIMESTAMP AS OF, after Spark has evaluated the expression, and for `/path@<time>`.
    micros = options.values.get("timestampasofmicros")
    text = options.values.get("timestampasof")
    if micros is None and text is None:
        return None
    if "versionasof" in options.values:
        raise InvalidArgumentError("versionAsOf and timestampAsOf cannot be used together")
    if micros is not None:
        return milliseconds(int(micros))
    return _milliseconds(jvm, session, "timestampAsOf", str(text))


def _milliseconds(jvm: Jvm, session: Any, name: str, text: str) -> int:
    """Parses a timestamp as Spark does. A timestamp without a time zone is in the session's time zone."""
    zone = jvm.java("java.time.ZoneId").of(session.sessionState().conf().sessionLocalTimeZone())
    utf8 = jvm.java("org.apache.spark.unsafe.types.UTF8String").fromString(text)
    parsed = jvm.java("org.apache.spark.sql.catalyst.util.DateTimeUtils").stringToTimestamp(utf8, zone)
    if parsed.isEmpty():
        raise InvalidArgumentError(f"{name} must be a timestamp such as '2025-01-31 12:00:00', not {text!r}")
    return milliseconds(int(parsed.get()), round_up=name == "startingTimestamp")
