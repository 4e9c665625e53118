"""The operations that the JVM calls in Python."""

from collections.abc import Callable
from typing import Any, ClassVar

from deltalog._internal import Snapshot
from deltalog.spark.errors import InvalidArgumentError, NotATableError, UnsupportedFeatureError
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
    snapshot_relation,
)
from deltalog.spark.sql import statements
from deltalog.spark.write import job
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
        if options.is_write_target:
            return self._jvm.new(
                "WriteTarget", session.sqlContext(), self._jvm.struct(snapshot.schema_json), scala_options
            )
        return snapshot_relation(self._jvm, session, snapshot, scala_options)

    def _save(self, session: Any, scala_options: Any, data: Any, mode: str) -> Any:
        options = Options.of(self._jvm, scala_options)
        uri = uri_of(self._jvm, session, options.path)
        version = job.save(self._jvm, session, data, options, mode)
        with after_commit(uri, version, "opening the table again", "read the table to continue"):
            return snapshot_relation(self._jvm, session, Snapshot.open(uri), scala_options)

    def _insert(self, session: Any, scala_options: Any, data: Any, overwrite: bool) -> None:
        job.insert(self._jvm, session, data, Options.of(self._jvm, scala_options), overwrite)

    def _create(self, session: Any, statement: Any) -> None:
        statements.create_table(self._jvm, session, statement)

    def _create_as_select(self, session: Any, statement: Any) -> None:
        statements.create_table_as_select(self._jvm, session, statement)

    def _exists(self, session: Any, path: str) -> bool:
        return is_delta_table(self._jvm, session, path)

    def _refuse_statement(self, session: Any, statement: Any) -> None:
        raise UnsupportedFeatureError(f"{statements.describe(statement)} is not supported yet by deltalog")

    _OPERATIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        "size": _size,
        "plan": _plan,
        "answers": _answers,
        "read": _read,
        "save": _save,
        "insert": _insert,
        "create": _create,
        "createAsSelect": _create_as_select,
        "exists": _exists,
        "refuseStatement": _refuse_statement,
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
