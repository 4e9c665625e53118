"""The procedures of deltalog: `CALL deltalog.<name>(…)`, and statements that Spark's grammar lacks.

A procedure is added as an entry of `PROCEDURES`. Spark binds the arguments and checks their names and types;
`DeltalogProcedure.java` passes them on. Statements with their own syntax are in `OwnStatement.java`.
"""

import difflib
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from pyspark.sql.types import LongType, StringType, StructField, StructType

from deltalog._internal import Snapshot, TableChange, alter_table
from deltalog.commit import commit_arguments
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, location_of
from deltalog.spark.options import Options
from deltalog.spark.read.relation import open_snapshot
from deltalog.spark.read.results import DETAIL, HISTORY, json_rows, row
from deltalog.spark.sql import clone, commands, convert, maintenance, vacuum
from deltalog.spark.sql.executors import Executors
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.defaults import defaults_of
from deltalog.spark.write.record import change_metadata
from deltalog.spark.write.settings import Settings
from deltalog.table.maintenance import generate

Rows = list[tuple[Any, ...]]

NAMESPACE = "deltalog"
_VERSION = StructType([StructField("version", LongType())])
_PATH = StructType([StructField("path", StringType())])


class Parameter(NamedTuple):
    """A parameter of a procedure."""

    name: str
    type: str
    """A type of Spark's SQL."""
    comment: str
    default: str | None = None
    """The default value as SQL; None if the argument is required."""


class Place(NamedTuple):
    """The directory for which a procedure is called. It may not be a table yet."""

    name: str
    """The directory as the caller has named it: a path, or the name of a table of Parquet files."""
    location: Location
    user_metadata: str | None
    """The user's text that a commit records."""
    settings: Settings
    """The settings of the session."""
    session: Any
    """The JVM's SparkSession."""
    jvm: Jvm


class Target(NamedTuple):
    """The table for which a procedure is called."""

    snapshot: Snapshot
    user_metadata: str | None
    """The user's text that a commit records."""
    settings: Settings
    """The settings of the session."""
    session: Any
    """The JVM's SparkSession."""
    jvm: Jvm
    name: str
    """The name that the caller has used for the table."""

    def changed(self, version: int | None) -> None:
        """Tells Spark that a commit has changed the rows and columns of the table."""
        refresh(self.jvm, self.session, self.snapshot.uri, version)
        self.jvm.static("EntryColumns", "update", self.session, self.name)


class Procedure(NamedTuple):
    """A procedure, whose first parameter is always the table."""

    name: str
    description: str
    parameters: Sequence[Parameter]
    """The parameters after the table."""
    output: StructType
    execute: Callable[..., Rows]
    """The function of the procedure. It gets the target, and the arguments in the order of the parameters."""
    is_for_directory: bool = False
    """Whether the first parameter is a directory. If so, the function gets a `Place`."""

    def to_json(self) -> str:
        """Returns the description of the procedure for `DeltalogProcedure.java`."""
        first = _DIRECTORY if self.is_for_directory else _TABLE
        parameters = [parameter._asdict() for parameter in (first, *self.parameters)]
        return json.dumps(
            {
                "name": self.name,
                "description": self.description,
                "parameters": parameters,
                "output": self.output.json(),
                "isForDirectory": self.is_for_directory,
            }
        )


_TABLE = Parameter("table", "STRING", "the name of a table, its path, or deltalog.`/path`")
_DIRECTORY = Parameter(
    "table", "STRING", "the path of a directory, parquet.`/path`, or the name of a table of Parquet"
)


def find(name: str) -> Procedure:
    """Returns the procedure with this name.

    If there is none, raises an error that suggests the most similar name.
    """
    found = PROCEDURES.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name.rpartition(".")[2], PROCEDURES, n=1)
    proposal = f"{NAMESPACE}.{near[0]}" if near else f"one of {NAMESPACE}.{{{','.join(PROCEDURES)}}}"
    raise InvalidArgumentError(f"there is no procedure {name}: call {proposal}")


def call(jvm: Jvm, session: Any, name: str, table: str, options: Options, arguments: Sequence[Any]) -> str:
    """Calls a procedure for a table; returns its rows as JSON."""
    procedure = find(name)
    for parameter, argument in zip(procedure.parameters, arguments, strict=True):
        if argument is None and parameter.default != "NULL":
            raise InvalidArgumentError(
                f"the argument {parameter.name} of {NAMESPACE}.{name} must not be NULL (table {table})"
            )
    settings = Settings.of(jvm, session)
    if procedure.is_for_directory:
        location = location_of(jvm, session, options)
        place = Place(table.strip(), location, change_metadata(settings), settings, session, jvm)
        return json_rows(procedure.output, procedure.execute(place, *arguments))
    snapshot = open_snapshot(jvm, session, options)
    target = Target(snapshot, change_metadata(settings), settings, session, jvm, table)
    return json_rows(procedure.output, procedure.execute(target, *arguments))


def _history(target: Target, limit: int | None) -> Rows:
    if limit is not None and limit < 1:
        raise InvalidArgumentError(f"the limit of the history must be at least 1, not {limit}")
    commits = commands.answer(target.snapshot, "history", {"limit": limit})
    return [row(HISTORY, commit) for commit in commits]


def _detail(target: Target) -> Rows:
    return [row(DETAIL, commands.answer(target.snapshot, "detail", {}))]


def _checkpoint(target: Target) -> Rows:
    target.snapshot.create_checkpoint()
    return [(target.snapshot.version,)]


def _add_feature(target: Target, feature: str) -> Rows:
    return _commanded(target, "addFeature", feature=feature)


def _drop_feature(target: Target, feature: str, truncate_history: bool) -> Rows:
    return _commanded(target, "dropFeature", feature=feature, truncate_history=truncate_history)


def _upgrade_protocol(target: Target, reader: int, writer: int) -> Rows:
    return _commanded(target, "upgradeProtocol", reader=reader, writer=writer)


def _commanded(target: Target, command: str, **arguments: Any) -> Rows:
    """Executes a command of `DeltaTable` that returns a version."""
    arguments["user_metadata"] = target.user_metadata
    return [(commands.answer(target.snapshot, command, arguments),)]


def _add_constraint(target: Target, name: str, expression: str) -> Rows:
    return _changed(target, TableChange.add_constraints([(name, expression)]))


def _drop_constraint(target: Target, name: str, if_exists: bool) -> Rows:
    return _changed(target, TableChange.drop_constraint(name, if_exists))


def _changed(target: Target, change: TableChange) -> Rows:
    return [(alter_table(target.snapshot, change, commit_arguments(None, target.user_metadata)),)]


def _vacuum(
    target: Target, retain_hours: float | None, dry_run: bool, mode: str | None, inventory: str | None
) -> Rows:
    settings = target.settings
    is_lite = vacuum.is_lite(mode, settings.boolean(vacuum.LITE) is True and inventory is None)
    if is_lite and inventory is not None:
        raise InvalidArgumentError(
            "an inventory replaces the listing of all files, so it cannot be used with LITE: use FULL, or leave the "
            "inventory out"
        )
    rows = None if inventory is None else vacuum.inventory_of(target.session, inventory)
    plan = vacuum.plan(
        target.snapshot,
        retain_hours,
        target.user_metadata,
        enforces_retention=settings.boolean(vacuum.CHECK) is not False,
        is_lite=is_lite,
        inventory=rows,
    )
    if dry_run:
        return [(path,) for path in vacuum.shown(target.snapshot, plan.paths())]
    plan.delete()
    return [(path.rstrip("/"),) for path in vacuum.shown(target.snapshot, [""])]


def _optimize(
    target: Target,
    predicate: str | None,
    dry_run: bool,
    z_order: list[str] | None,
    curve: str | None,
    full: bool,
) -> Rows:
    row = maintenance.optimized(
        target.snapshot,
        predicate,
        target.user_metadata,
        z_order=z_order,
        curve=curve,
        full=full,
        dry_run=dry_run,
        executors=Executors(target.jvm, target.session),
    )
    return [tuple(row)]


def _reorg(target: Target, predicate: str | None, apply: str, dry_run: bool) -> Rows:
    if apply.strip().upper() != "PURGE":
        raise UnsupportedFeatureError(
            f"REORG ... APPLY ({apply}) is not implemented (table {target.snapshot.uri}): only APPLY (PURGE) is"
        )
    row = maintenance.optimized(
        target.snapshot,
        predicate,
        target.user_metadata,
        purges=True,
        dry_run=dry_run,
        executors=Executors(target.jvm, target.session),
    )
    return [tuple(row)]


def _recompute_statistics(target: Target, predicate: str | None, all_files: bool, dry_run: bool) -> Rows:
    row = maintenance.recomputed(
        target.snapshot, predicate, target.user_metadata, all_files=all_files, dry_run=dry_run
    )
    return [tuple(row)]


def _restore(target: Target, version: int | None, timestamp: int | None, dry_run: bool) -> Rows:
    text = None if timestamp is None else f"{timestamp_of(timestamp):%Y-%m-%d %H:%M:%S.%f %Z}"
    row, committed = maintenance.restored(
        target.snapshot,
        version,
        None if timestamp is None else timestamp // 1000,
        text,
        target.user_metadata,
        ignore_missing_files=target.settings.ignores_missing_files,
        dry_run=dry_run,
    )
    target.changed(committed)
    return [tuple(row)]


def _check(target: Target, level: str) -> Rows:
    return [maintenance.checked_row(found) for found in maintenance.checked(target.snapshot, level)]


def _repair(target: Target, dry_run: bool, remove_damaged: bool, drop_files_without_vectors: bool) -> Rows:
    rows, committed = maintenance.repaired(
        target.snapshot,
        target.user_metadata,
        remove_damaged=remove_damaged,
        drop_files_without_vectors=drop_files_without_vectors,
        dry_run=dry_run,
    )
    target.changed(committed)
    return [tuple(row) for row in rows]


def _generate(target: Target, mode: str) -> Rows:
    return [(generate(target.snapshot, mode),)]


def _clone(
    target: Target,
    clone_of: str,
    shallow: bool,
    mode: str,
    version: int | None,
    timestamp: int | None,
    location: str | None,
    properties: str | None,
    dry_run: bool,
) -> Rows:
    source = target.snapshot
    if version is not None or timestamp is not None:
        source = source.at(version, None if timestamp is None else timestamp // 1000)
    request = clone.CloneRequest(clone_of, shallow, mode, location, properties, dry_run=dry_run)
    return [tuple(clone.cloned(target.jvm, target.session, source, request, target.user_metadata))]


def _convert(place: Place, partition_by: str | None, statistics: bool, dry_run: bool) -> Rows:
    columns = None if partition_by is None else convert.partition_schema(place.jvm, partition_by)
    directory = convert.Directory(
        place.location.uri,
        place.location.storage_options,
        columns,
        place.user_metadata,
        place.settings.time_zone,
    )
    place.location.ensure_in_reach()
    entry = convert.Entry.of(place.jvm, place.session, place.name)
    defaults = defaults_of(place.settings)
    row = convert.converted(directory, entry, defaults, statistics=statistics, dry_run=dry_run)
    return [tuple(row)]


def timestamp_of(micros: int) -> datetime:
    """Converts a time from Spark, in microseconds since the epoch, to a `datetime`."""
    return datetime.fromtimestamp(micros // 1_000_000, timezone.utc) + timedelta(
        microseconds=micros % 1_000_000
    )


def _alteration(
    name: str, description: str, parameters: Sequence[Parameter], execute: Callable[..., Rows]
) -> Procedure:
    """Returns a procedure that changes the table and returns its version."""
    return Procedure(
        name, f"{description} Returns the new version of the table.", parameters, _VERSION, execute
    )


_DRY_RUN = Parameter("dry_run", "BOOLEAN", "commit nothing, and return what would be done", "false")
_FEATURE = Parameter("feature", "STRING", "the name of a table feature, such as deletionVectors")

PROCEDURES = {
    procedure.name: procedure
    for procedure in (
        Procedure(
            "history",
            "Returns the commits, newest first.",
            [Parameter("limit", "INT", "the maximum number of commits; by default all", "NULL")],
            HISTORY,
            _history,
        ),
        Procedure("detail", "Returns one row that describes the newest version.", [], DETAIL, _detail),
        Procedure("checkpoint", "Writes a checkpoint of the newest version.", [], _VERSION, _checkpoint),
        _alteration(
            "add_feature_support",
            "Adds a table feature to the protocol.",
            [_FEATURE],
            _add_feature,
        ),
        _alteration(
            "drop_feature",
            "Drops a table feature.",
            [
                _FEATURE,
                Parameter("truncate_history", "BOOLEAN", "delete the versions that use the feature", "false"),
            ],
            _drop_feature,
        ),
        _alteration(
            "upgrade_protocol",
            "Upgrades the protocol to at least these versions.",
            [
                Parameter("reader_version", "INT", "the version for readers"),
                Parameter("writer_version", "INT", "the version for writers"),
            ],
            _upgrade_protocol,
        ),
        _alteration(
            "add_constraint",
            "Adds a CHECK constraint.",
            [
                Parameter("name", "STRING", "the name of the constraint"),
                Parameter("expression", "STRING", "the condition, which no row may violate"),
            ],
            _add_constraint,
        ),
        _alteration(
            "drop_constraint",
            "Drops a CHECK constraint.",
            [
                Parameter("name", "STRING", "the name of the constraint"),
                Parameter("if_exists", "BOOLEAN", "do nothing if there is no such constraint", "false"),
            ],
            _drop_constraint,
        ),
        Procedure(
            "vacuum",
            "Deletes files that the table no longer needs. Returns the table's path, or with dry_run the files.",
            [
                Parameter(
                    "retain_hours", "DOUBLE", "the retention of removed files; by default the table's", "NULL"
                ),
                Parameter("dry_run", "BOOLEAN", "delete nothing", "false"),
                Parameter("mode", "STRING", "FULL, or LITE to find files by reading only the log", "NULL"),
                Parameter(
                    "inventory",
                    "STRING",
                    "a table or a query in parentheses that lists the files of the store",
                    "NULL",
                ),
            ],
            _PATH,
            _vacuum,
        ),
        Procedure(
            "optimize",
            "Combines small files into fewer, larger ones, clusters new files of a clustered table, or orders all rows "
            "by columns. Returns the table's path and the metrics.",
            [
                Parameter(
                    "predicate",
                    "STRING",
                    "an SQL condition on partition columns that selects partitions; all by default",
                    "NULL",
                ),
                Parameter("dry_run", "BOOLEAN", "write nothing, and return what would be done", "false"),
                Parameter("z_order", "ARRAY<STRING>", "the columns by which rows are ordered", "NULL"),
                Parameter(
                    "curve", "STRING", "the curve of the order: hilbert (the default) or zorder", "NULL"
                ),
                Parameter(
                    "full", "BOOLEAN", "cluster all files of a clustered table, not only new ones", "false"
                ),
            ],
            maintenance.OPTIMIZED,
            _optimize,
        ),
        Procedure(
            "reorg",
            "Rewrites files to remove deleted rows and dropped columns. Returns the table's path and the metrics.",
            [
                Parameter(
                    "predicate",
                    "STRING",
                    "an SQL condition on partition columns that selects partitions; all by default",
                    "NULL",
                ),
                Parameter("apply", "STRING", "what to do: PURGE", "'PURGE'"),
                Parameter("dry_run", "BOOLEAN", "write nothing, and return what would be done", "false"),
            ],
            maintenance.OPTIMIZED,
            _reorg,
        ),
        Procedure(
            "recompute_statistics",
            "Computes statistics for files whose statistics are missing or poor. Returns the metrics.",
            [
                Parameter(
                    "predicate",
                    "STRING",
                    "an SQL condition on partition columns that selects partitions; all by default",
                    "NULL",
                ),
                Parameter("all_files", "BOOLEAN", "compute statistics for all files", "false"),
                Parameter(
                    "dry_run", "BOOLEAN", "read no file, and return how many files would be read", "false"
                ),
            ],
            maintenance.RECOMPUTED,
            _recompute_statistics,
        ),
        Procedure(
            "clone",
            "Clones the table to another location. Returns the metrics.",
            [
                Parameter("target", "STRING", "the name of the clone, its path, or deltalog.`/path`"),
                Parameter(
                    "shallow", "BOOLEAN", "refer to the files of the table instead of copying them", "false"
                ),
                Parameter(
                    "mode",
                    "STRING",
                    "create, create if not exists, or create or replace",
                    "'create'",
                ),
                Parameter("version", "BIGINT", "a version of the table; the newest by default", "NULL"),
                Parameter("timestamp", "TIMESTAMP", "a time, instead of the version", "NULL"),
                Parameter("location", "STRING", "the path of a clone that has a name", "NULL"),
                Parameter(
                    "properties", "STRING", "properties of the clone, as a JSON object of strings", "NULL"
                ),
                _DRY_RUN,
            ],
            clone.CLONED,
            _clone,
        ),
        Procedure(
            "convert",
            "Turns a directory of Parquet files into a table. Returns its path, version, number of files and size.",
            [
                Parameter(
                    "partition_by",
                    "STRING",
                    "the partition columns with their types, as in CREATE TABLE; inferred by default",
                    "NULL",
                ),
                Parameter(
                    "statistics", "BOOLEAN", "collect statistics from the footers of the files", "true"
                ),
                _DRY_RUN,
            ],
            convert.CONVERTED,
            _convert,
            is_for_directory=True,
        ),
        Procedure(
            "restore",
            "Restores an earlier version as the newest one. Returns the metrics.",
            [
                Parameter("version", "BIGINT", "the version", "NULL"),
                Parameter("timestamp", "TIMESTAMP", "a time, instead of the version", "NULL"),
                _DRY_RUN,
            ],
            maintenance.RESTORED,
            _restore,
        ),
        Procedure(
            "check",
            "Checks whether the files of the newest version exist and match the log. Returns one row per problem.",
            [
                Parameter(
                    "level",
                    "STRING",
                    "how much is checked: files, footers (and deletion vectors), or rows (and statistics)",
                    "'footers'",
                )
            ],
            maintenance.CHECKED,
            _check,
        ),
        Procedure(
            "repair",
            "Removes missing files from the table. Returns these files.",
            [
                _DRY_RUN,
                Parameter("remove_damaged", "BOOLEAN", "remove damaged files as well", "false"),
                Parameter(
                    "drop_files_without_vectors",
                    "BOOLEAN",
                    "remove files whose deletion vectors cannot be read, with all of their rows",
                    "false",
                ),
            ],
            maintenance.REPAIRED,
            _repair,
        ),
        Procedure(
            "generate",
            "Writes manifests for Presto, Athena and others. Returns the version that the manifests describe.",
            [Parameter("mode", "STRING", "symlink_format_manifest", "'symlink_format_manifest'")],
            _VERSION,
            _generate,
        ),
    )
}
