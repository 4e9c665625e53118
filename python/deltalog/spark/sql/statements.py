"""Execution of `CREATE TABLE … USING deltalog`, with and without `AS SELECT`.

The table is created before its entry in the session catalog.
"""

import json
from contextlib import AbstractContextManager
from typing import Any

from deltalog._internal import AlreadyApplied, Snapshot, SparkWrite
from deltalog.arguments import TableOptions
from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import path_of, uri_of
from deltalog.spark.options import BASE_VERSION, Options
from deltalog.spark.write import fit, job
from deltalog.spark.write.outcome import after_commit
from deltalog.spark.write.record import Record, started

_CATALYST = "org.apache.spark.sql.catalyst"
# Properties that Spark keeps in the catalog for internal use.
_CATALOG_PROPERTIES = ("owner", "provider", "location", "transient_lastDdlTime")
_STATEMENTS = {
    "InsertIntoHadoopFsRelationCommand": "INSERT with a PARTITION clause",
    "DeleteFromTable": "DELETE",
    "UpdateTable": "UPDATE",
    "MergeIntoTable": "MERGE",
    "TruncateTableCommand": "TRUNCATE TABLE",
    "RepairTableCommand": "MSCK REPAIR TABLE",
    "LoadDataCommand": "LOAD DATA",
    "CreateTableLikeCommand": "CREATE TABLE LIKE",
}


def describe(statement: Any) -> str:
    """Returns the SQL name of an unsupported statement."""
    kind = statement.getClass()
    name = str(kind.getSimpleName())
    if name.startswith("AlterTable") or ".TableChange$" in kind.getName():
        return f"ALTER TABLE ({name})"
    return _STATEMENTS.get(name, name)


def create_table(jvm: Jvm, session: Any, statement: Any) -> None:
    """Creates a table with the given columns, or an entry for the existing table at the location."""
    table = statement.table()
    catalog = session.sessionState().catalog()
    if _exists(catalog, table, statement.ignoreIfExists()):
        return
    location, uri = _location(jvm, session, catalog, table)
    _check(jvm, table)
    Options.of(jvm, table.storage().properties()).check_mode("errorifexists")
    existing = _existing(uri)
    if existing is not None and table.schema().fields():
        _check_same(jvm, table, existing)
    version = _create_empty(jvm, session, table, uri) if existing is None else None
    with _registering(jvm, table, uri, version):
        _register(jvm, catalog, table, existing or Snapshot.open(uri), location)


def create_table_as_select(jvm: Jvm, session: Any, statement: Any) -> None:
    """Executes `CREATE TABLE … AS SELECT`, `saveAsTable` and `writeTo(…).create()`."""
    table, mode = statement.table(), statement.mode().name()
    catalog = session.sessionState().catalog()
    exists = catalog.tableExists(table.identifier())
    if exists and mode == "Ignore":
        return
    if exists and mode == "ErrorIfExists":
        raise InvalidArgumentError(f"the table {table.identifier().unquotedString()} already exists")
    definition = catalog.getTableMetadata(table.identifier()) if exists else table
    _check_provider(jvm, definition)
    location, uri = _location(jvm, session, catalog, definition)
    _check(jvm, table)
    options = Options.of(jvm, table.storage().properties())
    options.check_write()
    data = _query(jvm, session, statement)
    partition_by = jvm.sequence(table.partitionColumnNames())
    configuration = _configuration(jvm, table)
    table_options = TableOptions(partition_by or None, configuration, None, _comment(table))
    record = Record.of_session(options, session)
    pending = job.begin(jvm, session, data, uri, mode, table_options, options, record)
    version = None
    if pending is not None:
        operation = "WRITE" if exists else "CREATE TABLE AS SELECT"
        parameters = _parameters(table, partition_by, configuration, mode)
        version = job.run(jvm, session, data, pending, uri, options, operation, parameters, record)
    if not exists:
        with _registering(jvm, table, uri, version):
            _register(jvm, catalog, table, Snapshot.open(uri), location)


def _registering(jvm: Jvm, table: Any, uri: str, version: int | None) -> AbstractContextManager[None]:
    """Makes the error of a failure to create the catalog entry state that `version` was committed."""
    name = table.identifier()
    step = f"registering the table {name.unquotedString()} in the session catalog"
    location = path_of(jvm, uri).replace("\\", "\\\\").replace("'", "\\'")
    hint = f"register it with CREATE TABLE {name.quotedString()} USING deltalog LOCATION '{location}'"
    return after_commit(uri, version, step, hint)


def _check_provider(jvm: Jvm, definition: Any) -> None:
    """Raises an error if the existing table has another format, because its directory must not get a log."""
    if not jvm.static("TableDefinition", "isOurs", definition):
        provider = definition.provider().get() if definition.provider().isDefined() else "unknown"
        name = definition.identifier().unquotedString()
        raise InvalidArgumentError(
            f"the table {name} has the format {provider}, which deltalog does not overwrite: drop it first, or write "
            "to another name"
        )


def _query(jvm: Jvm, session: Any, statement: Any) -> Any:
    data = fit.dataset(jvm, session, statement.query())
    return data.toDF(jvm.seq(jvm.sequence(statement.outputColumnNames())))


def _exists(catalog: Any, table: Any, ignore: bool) -> bool:
    """Returns whether the catalog has the table; raises an error if it does, unless `ignore` is set."""
    if not catalog.tableExists(table.identifier()):
        return False
    if ignore:
        return True
    raise InvalidArgumentError(f"the table {table.identifier().unquotedString()} already exists")


def _location(jvm: Jvm, session: Any, catalog: Any, table: Any) -> tuple[Any, str]:
    """Returns the location as a URI of Spark's catalog and as a URL of the core."""
    given = table.storage().locationUri()
    location = given.get() if given.isDefined() else catalog.defaultTablePath(table.identifier())
    return location, uri_of(jvm, session, jvm.root.org.apache.hadoop.fs.Path(location).toString())


def _check(jvm: Jvm, table: Any) -> None:
    if table.bucketSpec().isDefined():
        raise InvalidArgumentError("a Delta table cannot be bucketed: omit CLUSTERED BY … INTO … BUCKETS")
    if "clusteringColumns" in jvm.dictionary(table.properties()):
        raise InvalidArgumentError("CLUSTER BY is not supported yet by deltalog")


def _existing(uri: str) -> Snapshot | None:
    try:
        return Snapshot.open(uri)
    except NotATableError:
        return None


def _create_empty(jvm: Jvm, session: Any, table: Any, uri: str) -> int | None:
    """Creates a table without rows; returns its version."""
    if not table.schema().fields():
        raise NotATableError(
            f"there is no Delta table at {uri}, and CREATE TABLE has no columns to create one"
        )
    partition_by = jvm.sequence(table.partitionColumnNames())
    configuration = _configuration(jvm, table)
    schema_json = schema.of_definition(table.schema().json())
    record = Record.of_session(Options({}), session)
    begun = SparkWrite.begin(
        uri,
        schema_json,
        "errorifexists",
        TableOptions(partition_by or None, configuration, None, _comment(table)),
    )
    pending = started(begun, uri)
    if pending is None:
        return None
    parameters = _parameters(table, partition_by, configuration, None)
    outcome = pending.commit(
        "CREATE TABLE", parameters, job.engine_info(session), user_metadata=record.user_metadata
    )
    return None if isinstance(outcome, AlreadyApplied) else outcome


def _check_same(jvm: Jvm, table: Any, existing: Snapshot) -> None:
    """Raises an error if CREATE TABLE does not describe the existing Delta table."""
    from deltalog.spark.read.relation import check_expected_schema

    check_expected_schema(existing, table.schema())
    given = jvm.sequence(table.partitionColumnNames())
    if given != list(existing.partition_columns):
        raise InvalidArgumentError(
            f"the Delta table {existing.uri} is partitioned by ({', '.join(existing.partition_columns)}), "
            f"not by ({', '.join(given)})"
        )
    for name, value in _configuration(jvm, table).items():
        if existing.configuration.get(name) != value:
            raise InvalidArgumentError(
                f"the Delta table {existing.uri} does not have the property {name}={value} of CREATE TABLE"
            )


def _register(jvm: Jvm, catalog: Any, table: Any, snapshot: Snapshot, location: Any) -> None:
    """Creates the catalog entry.

    It has columns, which listings show, but no statistics and no partitions, which are in the log.
    """
    partitions = list(snapshot.partition_columns)
    names = schema.field_names(snapshot.schema_json)
    if names[len(names) - len(partitions) :] != partitions:
        partitions = []  # Spark's catalog requires partition columns to come last.
    # The base belongs to this write, but Spark passes the options in the catalog to later ones.
    options = jvm.dictionary(table.storage().properties())
    kept = {name: value for name, value in options.items() if name.lower() != BASE_VERSION.lower()}
    changed = {"locationUri": jvm.some(location), "properties": jvm.scala_map(kept)}
    storage = jvm.static("CaseClass", "with", table.storage(), changed)
    changes = {
        "storage": storage,
        "schema": jvm.struct(snapshot.schema_json),
        "partitionColumnNames": jvm.seq(partitions),
        "tracksPartitionsInCatalog": False,
    }
    catalog.createTable(jvm.static("CaseClass", "with", table, changes), False, False)


def _configuration(jvm: Jvm, table: Any) -> dict[str, str]:
    properties = jvm.dictionary(table.properties())
    return {
        name: value
        for name, value in properties.items()
        if name not in _CATALOG_PROPERTIES and not name.startswith("option.")
    }


def _comment(table: Any) -> str | None:
    return table.comment().get() if table.comment().isDefined() else None


def _parameters(
    table: Any, partition_by: list[str], configuration: dict[str, str], mode: str | None
) -> dict[str, str]:
    managed = "true" if table.tableType().name() == "MANAGED" else "false"
    parameters = {
        "isManaged": managed,
        "partitionBy": json.dumps(partition_by),
        "properties": json.dumps(configuration),
    }
    if mode is not None:
        parameters["mode"] = mode
    comment = _comment(table)
    return parameters if comment is None else {**parameters, "description": comment}
