"""Executes CREATE and REPLACE TABLE, with and without `AS SELECT`, and `saveAsTable`.

The table is created before its entry in the session catalog. Its definition and its rows are committed together.
"""

import json
from typing import Any

from deltalog._internal import Snapshot, SparkWrite
from deltalog.arguments import TableOptions
from deltalog.spark import schema
from deltalog.spark.dml import replacing
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, location_of, unescaped, uri_of
from deltalog.spark.options import Options
from deltalog.spark.secrecy import check_table_options
from deltalog.spark.sql.definition import Definition
from deltalog.spark.sql.entries import NewEntry, default_path
from deltalog.spark.sql.existing import check_same, check_vacant
from deltalog.spark.write import job
from deltalog.spark.write.base import read_before
from deltalog.spark.write.defaults import defaults_of
from deltalog.spark.write.record import Record, started
from deltalog.spark.write.request import WriteRequest
from deltalog.spark.write.settings import Settings

_STATEMENTS = {
    "DeleteFromTable": "DELETE",
    "UpdateTable": "UPDATE",
    "MergeIntoTable": "MERGE",
    "InsertIntoHadoopFsRelationCommand": "INSERT with a PARTITION clause",
    "TruncateTableCommand": "TRUNCATE TABLE",
    "RepairTableCommand": "MSCK REPAIR TABLE",
    "LoadDataCommand": "LOAD DATA",
    "CreateTableLikeCommand": "CREATE TABLE LIKE",
}
_MODES = {"create": "error", "replace": "overwrite", "createOrReplace": "overwrite"}
_OPERATIONS = {
    "create": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "createOrReplace": "CREATE OR REPLACE TABLE",
}


def describe(statement: Any) -> str:
    """Returns the SQL name of an unsupported statement."""
    kind = statement.getClass()
    name = str(kind.getSimpleName())
    if name.startswith("AlterTable") or ".TableChange$" in kind.getName():
        return f"ALTER TABLE ({name})"
    return _STATEMENTS.get(name, name)


def place(jvm: Jvm, session: Any, definition: Definition) -> str:
    """Returns the path at which a table is to be created."""
    return _Entry(jvm, session, definition).path


def create(jvm: Jvm, session: Any, definition: Definition) -> None:
    """Creates or replaces a table without rows, or creates an entry for the existing table at the location."""
    entry = _Entry(jvm, session, definition)
    options = Options(definition.options)
    check_table_options(options)
    options.check_mode("errorifexists")
    existing = _existing(entry.location) if definition.mode == "create" else None
    if existing is not None:
        if definition.database is None:
            raise InvalidArgumentError(f"the table {definition.name} already exists")
        check_same(jvm, definition, existing)
        entry.add(None)
        return
    if not definition.has_columns:
        raise NotATableError(
            f"there is no Delta table at {entry.uri}, and CREATE TABLE has no columns to create one"
        )
    if not entry.exists:
        check_vacant(jvm, session, entry.location, definition.name)
    settings = Settings.of(jvm, session)
    definition = definition.with_defaults(defaults_of(settings))
    record = Record.of_session(Options({}), settings)
    pending = _begun(entry.location, definition.schema_json, definition, record)
    if pending is None:
        return
    outcome = pending.commit(
        _OPERATIONS[definition.mode],
        _parameters(definition),
        job.engine_info(settings),
        user_metadata=record.user_metadata,
    )
    entry.add(outcome if isinstance(outcome, int) else None)


def create_as_select(jvm: Jvm, session: Any, definition: Definition, data: Any, options: Options) -> None:
    """Creates, replaces or overwrites a table with rows."""
    check_table_options(Options(definition.options))
    entry = _Entry(jvm, session, definition)
    options = Options({**definition.options, **options.values})
    save_mode = "Overwrite"
    if definition.mode == "overwrite" and options.replaces_rows:
        placed = Options({**options.values, "path": entry.path})
        if replacing.replace(jvm, session, data, placed, entry.location, overwrites=True):
            entry.add(None, options)
            return
        # The table does not exist. If another writer creates it in the meantime, that table is not overwritten.
        options, save_mode = options.without_replacing(), "ErrorIfExists"
    options.check_write()
    if definition.mode == "create":
        check_vacant(jvm, session, entry.location, definition.name)
    request = WriteRequest.of(jvm, session, entry.location, options, data)
    if definition.mode != "overwrite" or _existing(entry.location) is None:
        definition = definition.with_defaults(defaults_of(request.settings))
    if definition.mode == "overwrite":
        pending = _begin_save(definition, request, save_mode)
    else:
        pending = _begin_definition(definition, request)
    version = None
    if pending is not None:
        operation = "WRITE"
        if definition.mode != "overwrite" or not entry.exists:
            operation = f"{_OPERATIONS.get(definition.mode, 'CREATE TABLE')} AS SELECT"
        version = job.run(request, pending, operation, _parameters(definition))
    entry.add(version, options)


def _begin_save(definition: Definition, request: WriteRequest, save_mode: str) -> SparkWrite | None:
    if definition.cluster_by is not None:
        raise InvalidArgumentError(
            "clusterBy cannot be used with saveAsTable in the mode overwrite, which keeps the clustering of a table: "
            "use writeTo(…).clusterBy(…).createOrReplace(), or ALTER TABLE … CLUSTER BY"
        )
    return job.begin(request, save_mode, _table_options(definition))


def _begin_definition(definition: Definition, request: WriteRequest) -> SparkWrite | None:
    replaces = _MODES[definition.mode] == "overwrite"
    request.options.check_mode("overwrite" if replaces else "errorifexists")
    own = read_before(request, "overwrite") if replaces else None
    base = None if own is None else own.base
    columns = schema.of_data(definition.schema_json)
    pending = _begun(request.location, columns, definition, request.record, base)
    if pending is None:
        request.record.finish(request.session)
    return pending


def _begun(
    location: Location, schema_json: str, definition: Definition, record: Record, base: Snapshot | None = None
) -> SparkWrite | None:
    begun = SparkWrite.define(
        location.uri,
        schema_json,
        _MODES[definition.mode],
        _table_options(definition),
        location.storage_options,
        definition.clustering,
        base,
        record.app_transaction,
    )
    return started(begun, location.uri)


class _Entry:
    """The entry of a table in the session catalog. A table that is named by its path has none."""

    def __init__(self, jvm: Jvm, session: Any, definition: Definition) -> None:
        self._jvm = jvm
        self._session = session
        self._definition = definition
        self._catalog = session.sessionState().catalog()
        self.exists = False
        location = definition.location
        if definition.database is not None:
            database, catalog = jvm.some(definition.database), jvm.some("spark_catalog")
            self._identifier = jvm.java("org.apache.spark.sql.catalyst.TableIdentifier")(
                definition.name, database, catalog
            )
            self.exists = bool(self._catalog.tableExists(self._identifier))
            if self.exists:
                refuse_format(jvm, session, self._identifier)
                found = self._catalog.getTableMetadata(self._identifier).storage().locationUri().get()
                location = jvm.java("org.apache.hadoop.fs.Path")(found).toString()
                self._check_location(session, str(location))
            elif location is None:
                location = default_path(jvm, session, self._identifier)
        self.path = str(location)
        self.location = location_of(jvm, session, Options({**definition.options, "path": self.path}))
        self.uri = self.location.uri

    def _check_location(self, session: Any, location: str) -> None:
        """Raises an error if the statement names a location that differs from the entry's location, which cannot
        change.
        """
        given = self._definition.location
        if given is None:
            return
        wanted, known = (uri_of(self._jvm, session, path) for path in (str(given), location))
        if unescaped(wanted).rstrip("/") != unescaped(known).rstrip("/"):
            raise InvalidArgumentError(
                f"the table {self._identifier.unquotedString()} is at {known}, not at {wanted}: leave the location out "
                "to replace it there, or drop the table first"
            )

    def add(self, version: int | None, options: Options | None = None) -> None:
        """Creates the entry, after `version` was committed. Does nothing if it exists."""
        if self._definition.database is None or self.exists:
            return
        kept = self._definition.options
        if options is not None and "allowedroots" in options.values:
            kept = {**kept, "allowedRoots": options.values["allowedroots"]}
        definition = self._definition
        entry = NewEntry(self._identifier, self.uri, definition.is_managed, definition.provider, kept)
        entry.create(self._jvm, self._session, version)


def refuse_format(jvm: Jvm, session: Any, identifier: Any) -> None:
    """Raises an error if the existing table has another format, because its directory must not get a log."""
    definition = session.sessionState().catalog().getTableMetadata(identifier)
    if not jvm.static("CatalogEntries", "isEntry", definition):
        provider = definition.provider().get() if definition.provider().isDefined() else "unknown"
        raise InvalidArgumentError(
            f"the table {definition.identifier().unquotedString()} has the format {provider}, which deltalog does not "
            "overwrite: drop it first, or write to another name"
        )


def _existing(location: Location) -> Snapshot | None:
    try:
        return Snapshot.open(location.uri, storage_options=location.storage_options)
    except NotATableError:
        return None


def _table_options(definition: Definition) -> TableOptions:
    return TableOptions(definition.partition_by or None, definition.configuration, None, definition.comment)


def _parameters(definition: Definition) -> dict[str, str]:
    parameters = {
        "isManaged": "true" if definition.is_managed else "false",
        "partitionBy": json.dumps(definition.partition_by),
        "properties": json.dumps(definition.configuration),
    }
    if definition.clustering is not None:
        parameters["clusterBy"] = json.dumps([".".join(path) for path in definition.cluster_by or []])
    if definition.mode == "overwrite":
        parameters["mode"] = "Overwrite"
    return parameters if definition.comment is None else {**parameters, "description": definition.comment}
