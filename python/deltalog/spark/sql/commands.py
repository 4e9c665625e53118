"""The commands of `DeltaTable`, which act on a snapshot.

A classic session calls them directly. Under Spark Connect they are sent to the server (`connect/exchange.py`), which
may execute a command twice. So a command that changes a table has no further effect if it is repeated.
"""

import json
from collections.abc import Callable
from typing import Any

from deltalog._internal import (
    AlreadyApplied,
    InvalidArgumentError,
    Snapshot,
    SparkStatement,
    StatementTask,
    TableChange,
    UnsupportedFeatureError,
    __version__,
    alter_table,
    drop_feature,
)
from deltalog.commit import commit_arguments
from deltalog.spark.sql import maintenance, vacuum
from deltalog.table.maintenance import generate

COMMAND = "deltalog.command"
# Substrings in the JSON of columns whose values Spark Connect compares or passes on differently than a classic session.
_UNSEEN = {
    '"__CHAR_VARCHAR_TYPE_STRING": "char': "the type char",
    '"variant"': "the type variant",
    '"__COLLATIONS"': "a collation",
}


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
        "tableFeatures": snapshot.table_features,
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


def _add_feature(snapshot: Snapshot, feature: str, user_metadata: str | None) -> int:
    return alter_table(snapshot, TableChange.add_features([feature]), commit_arguments(None, user_metadata))


def _drop_feature(snapshot: Snapshot, feature: str, truncate_history: bool, user_metadata: str | None) -> int:
    return drop_feature(snapshot, feature, truncate_history, commit_arguments(None, user_metadata))[-1]


def _upgrade_protocol(snapshot: Snapshot, reader: int, writer: int, user_metadata: str | None) -> int:
    change = TableChange.upgrade_protocol(reader, writer)
    return alter_table(snapshot, change, commit_arguments(None, user_metadata))


def _vacuum(
    snapshot: Snapshot, retention_hours: float | None, enforces_retention: bool, user_metadata: str | None
) -> int:
    """Deletes files that the table no longer needs. A repetition finds no files."""
    found = vacuum.plan(snapshot, retention_hours, user_metadata, enforces_retention=enforces_retention)
    _, _, _, version = found.delete()
    return version


def _optimize(
    snapshot: Snapshot,
    predicate: str | None,
    z_order: list[str] | None,
    user_metadata: str | None,
    *,
    full: bool = False,
) -> list[Any]:
    """Merges small files into fewer, larger ones, clusters rows, or orders all rows by columns."""
    return maintenance.optimized(snapshot, predicate, user_metadata, z_order=z_order, full=full)


def _restore(
    snapshot: Snapshot,
    version: int | None,
    timestamp_ms: int | None,
    timestamp: str | None,
    user_metadata: str | None,
) -> dict[str, Any]:
    """Restores an earlier version as the newest one. If the command is repeated, the table already equals that version,
    so nothing is committed.
    """
    row, committed = maintenance.restored(snapshot, version, timestamp_ms, timestamp, user_metadata)
    return {"rows": [row], "version": committed}


def _check(snapshot: Snapshot, level: str) -> list[dict[str, Any]]:
    return maintenance.checked(snapshot, level)


def _repair(
    snapshot: Snapshot,
    dry_run: bool,
    remove_damaged: bool,
    drop_files_without_vectors: bool,
    user_metadata: str | None,
) -> dict[str, Any]:
    """Removes missing files from the table. A repetition finds no missing files."""
    rows, committed = maintenance.repaired(
        snapshot,
        user_metadata,
        remove_damaged=remove_damaged,
        drop_files_without_vectors=drop_files_without_vectors,
        dry_run=dry_run,
    )
    return {"rows": rows, "version": committed}


def _recompute_statistics(
    snapshot: Snapshot, predicate: str | None, all_files: bool, user_metadata: str | None
) -> list[Any]:
    return maintenance.recomputed(snapshot, predicate, user_metadata, all_files=all_files)


def _generate(snapshot: Snapshot, mode: str) -> int:
    return generate(snapshot, mode)


def _statement_target(
    snapshot: Snapshot, name: str, version: int | None, app_transaction: list[Any] | None
) -> dict[str, Any]:
    """Returns the information that a client needs for a statement that changes the table, at the given version or the
    newest.

    Raises an error if the table cannot be changed by a statement with this name.
    """
    if version is not None and version != snapshot.version:
        snapshot = snapshot.at_version(version)
    _check_types(snapshot, name)
    pair = None if app_transaction is None else (app_transaction[0], app_transaction[1])
    _, applied = StatementTask.begin(snapshot, name, "", pair)
    begun = SparkStatement.begin(snapshot)
    generated = [] if isinstance(begun, AlreadyApplied) else begun[1].generated_columns
    return {
        "version": snapshot.version,
        "table_id": snapshot.table_id,
        "uri": snapshot.uri,
        "schema": snapshot.schema_json,
        "generated": [column for column, _ in generated],
        "tracks_rows": bool(snapshot.row_tracking_columns),
        "applied": applied is not None,
    }


def _check_types(snapshot: Snapshot, name: str) -> None:
    """Raises an error for columns that a Python data source receives in a different form."""
    for field in json.loads(snapshot.schema_json)["fields"]:
        text = json.dumps(field)
        found = [what for mark, what in _UNSEEN.items() if mark in text]
        if found:
            raise UnsupportedFeatureError(
                f"{name} under Spark Connect does not support the column {field['name']} of the table {snapshot.uri}, "
                f"which has {found[0]}: use a classic session"
            )


def _statement_metrics(snapshot: Snapshot, statement_id: str, version: int) -> dict[str, int] | None:
    """Returns the metrics of the commit of a statement that has read `version`; None if it has committed nothing."""
    newer = snapshot.version - version
    for text in snapshot.history_json(newer) if newer > 0 else []:
        commit = json.loads(text)
        if commit.get("txnId") == statement_id:
            return {name: int(value) for name, value in commit["operationMetrics"].items()}
    return None


_COMMANDS: dict[str, Callable[..., Any]] = {
    "version": _version,
    "history": _history,
    "detail": _detail,
    "count": _count,
    "countByPartition": _count_by_partition,
    "minMax": _min_max,
    "addFeature": _add_feature,
    "dropFeature": _drop_feature,
    "upgradeProtocol": _upgrade_protocol,
    "vacuum": _vacuum,
    "optimize": _optimize,
    "restore": _restore,
    "check": _check,
    "repair": _repair,
    "generate": _generate,
    "recomputeStatistics": _recompute_statistics,
    "statementTarget": _statement_target,
    "statementMetrics": _statement_metrics,
}


def answer(snapshot: Snapshot, command: str, arguments: dict[str, Any]) -> Any:
    """Returns the result of a command."""
    function = _COMMANDS.get(command)
    if function is None:
        raise InvalidArgumentError(
            f"{COMMAND} must be one of {', '.join(_COMMANDS)} in deltalog {__version__}, not {command!r}"
        )
    return function(snapshot, **arguments)
