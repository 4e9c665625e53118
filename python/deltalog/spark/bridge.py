"""The operations that the JVM calls in Python."""

from collections.abc import Callable
from typing import Any, ClassVar

from deltalog._internal import Snapshot
from deltalog.spark import schema
from deltalog.spark.dml.execute import counts, execute
from deltalog.spark.dml.text import name_of
from deltalog.spark.errors import (
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.callback import answer
from deltalog.spark.location import uri_of
from deltalog.spark.options import Options
from deltalog.spark.read.planner import answers_of, planner_of
from deltalog.spark.read.relation import (
    changes_relation,
    check_expected_schema,
    open_changes,
    open_snapshot,
    reopened_relation,
    snapshot_relation,
    table_state,
)
from deltalog.spark.sql import alterations, procedures, statements
from deltalog.spark.sql.definition import Definition
from deltalog.spark.write import evolution, fit, job
from deltalog.spark.write.outcome import after_commit


class Bridge:
    """The operations for all sessions of a JVM.

    Operations of statements receive the session as their first argument. Operations of a file index receive the
    key of its planner instead, because Spark may call them from its own threads, without a session.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    def call(self, operation: str, *arguments: Any) -> Any:
        """Executes one call of `PythonCalls.java`."""
        return answer(self._jvm, self._OPERATIONS[operation], self, *arguments)

    def _size(self, key: str) -> int:
        return planner_of(key).size()

    def _plan(self, key: str, filters: str, time_zone: str) -> Any:
        return planner_of(key).plan(filters, time_zone)

    def _answers(self, key: str, filters: str, time_zone: str, columns: Any) -> Any:
        return answers_of(key, filters, time_zone, columns)

    def _read(self, session: Any, scala_options: Any, schema: Any) -> Any:
        options = Options.of(self._jvm, scala_options)
        if options.wants_changes:
            if schema is not None:
                raise InvalidArgumentError(
                    "a change data feed is always read with the table's schema: omit the schema"
                )
            return changes_relation(
                self._jvm, session, open_changes(self._jvm, session, options), scala_options
            )
        snapshot = open_snapshot(self._jvm, session, options)
        if schema is not None:
            check_expected_schema(snapshot, schema)
        return snapshot_relation(self._jvm, session, snapshot, scala_options)

    def _save(self, session: Any, scala_options: Any, data: Any, mode: str) -> Any:
        options = Options.of(self._jvm, scala_options)
        uri = uri_of(self._jvm, session, options.path)
        version = job.save(self._jvm, session, data, options, mode)
        with after_commit(uri, version, "opening the table again", "read the table to continue"):
            return snapshot_relation(self._jvm, session, Snapshot.open(uri), scala_options)

    def _table(self, session: Any, scala_options: Any) -> Any:
        options = Options.of(self._jvm, scala_options)
        snapshot = open_snapshot(self._jvm, session, options)
        return table_state(self._jvm, session, snapshot, scala_options)

    def _read_with(self, session: Any, relation: Any, scala_options: Any) -> Any:
        options = Options.of(self._jvm, scala_options)
        return reopened_relation(self._jvm, session, relation.location().planner(), options, scala_options)

    def _insert(self, session: Any, scala_options: Any, data: Any, overwrite: bool) -> None:
        job.insert(self._jvm, session, data, Options.of(self._jvm, scala_options), overwrite)

    def _by_position(self, session: Any, data: Any, schema: Any, table: str) -> Any:
        return fit.by_position(self._jvm, session, data, schema, table)

    def _truncate(self, session: Any, scala_options: Any) -> None:
        job.truncate(self._jvm, session, Options.of(self._jvm, scala_options))

    def _alter(self, session: Any, scala_options: Any, changes: Any) -> None:
        alterations.alter(self._jvm, session, Options.of(self._jvm, scala_options), list(changes))

    def _create(self, session: Any, definition: str) -> None:
        statements.create(self._jvm, session, Definition.of(definition))

    def _create_as_select(self, session: Any, definition: str, data: Any, scala_options: Any) -> None:
        options = Options.of(self._jvm, scala_options)
        statements.create_as_select(self._jvm, session, Definition.of(definition), data, options)

    def _change(self, session: Any, statement: Any) -> str:
        name = name_of(statement)
        return " ".join(map(str, counts(name, execute(self._jvm, session, statement))))

    def _evolved(self, session: Any, relation: Any, data_schema: str) -> str:
        """Returns the columns that a MERGE with such data adds or changes, as the JSON of a schema."""
        snapshot = planner_of(relation.location().planner()).snapshot
        return evolution.changed_columns(snapshot, schema.of_data(data_schema))

    def _refuse_field(self, name: str, column_type: str) -> None:
        raise SchemaMismatchError(
            f"a value has the field {name}, which the column of the type {column_type} does not have: MERGE adds "
            "only columns and fields of its source"
        )

    def _procedures(self) -> str:
        return " ".join(procedures.PROCEDURES)

    def _procedure(self, name: str) -> str:
        return procedures.find(name).to_json()

    def _call_procedure(self, session: Any, name: str, table: str, scala_options: Any, arguments: Any) -> str:
        options = Options.of(self._jvm, scala_options)
        return procedures.call(self._jvm, session, name, table, options, list(arguments))

    def _refuse_no_table(self, procedure: str) -> None:
        raise InvalidArgumentError(
            f"the argument table of {procedures.NAMESPACE}.{procedure} must be the name or the path of a table"
        )

    def _refuse_table(self, table: str, reason: str) -> None:
        raise InvalidArgumentError(f"{table} is not a Delta table: {reason}")

    def _exists(self, session: Any, path: str) -> bool:
        return is_delta_table(self._jvm, session, path)

    def _refuse_statement(self, session: Any, statement: Any) -> None:
        name = statements.describe(statement)
        if name in ("DELETE", "UPDATE", "MERGE"):
            raise UnsupportedFeatureError(
                f"{name} is not enabled in this session, which is a copy of another one, as in foreachBatch: call "
                "deltalog.spark.enable(session) for it, or use the methods of deltalog.tables.DeltaTable"
            )
        raise UnsupportedFeatureError(f"{name} is not supported yet by deltalog")

    def _refuse_format(self, session: Any, statement: Any) -> None:
        statements.refuse_format(self._jvm, session, statement.table().identifier())
        self._refuse_catalog(session, statement)

    def _refuse_catalog(self, session: Any, statement: Any) -> None:
        raise UnsupportedFeatureError(
            "deltalog creates tables only in its own session catalog, but spark.sql.catalog.spark_catalog is set to "
            "another one: unset it and call deltalog.spark.enable(spark), or write to a path with save(path)"
        )

    _OPERATIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        "size": _size,
        "plan": _plan,
        "answers": _answers,
        "read": _read,
        "save": _save,
        "table": _table,
        "readWith": _read_with,
        "insert": _insert,
        "byPosition": _by_position,
        "truncate": _truncate,
        "alter": _alter,
        "create": _create,
        "createAsSelect": _create_as_select,
        "change": _change,
        "evolved": _evolved,
        "refuseField": _refuse_field,
        "procedures": _procedures,
        "procedure": _procedure,
        "callProcedure": _call_procedure,
        "refuseNoTable": _refuse_no_table,
        "refuseTable": _refuse_table,
        "exists": _exists,
        "refuseStatement": _refuse_statement,
        "refuseFormat": _refuse_format,
        "refuseCatalog": _refuse_catalog,
    }


def is_delta_table(jvm: Jvm, session: Any, path: str) -> bool:
    """Returns whether there is a Delta table at `path`.

    Raises an error if the location cannot be read.
    """
    try:
        Snapshot.open(uri_of(jvm, session, path))
    except NotATableError:
        return False
    return True
