"""The table that a statement under Spark Connect changes."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

import deltalog.errors
from deltalog.filters import quoted
from deltalog.spark.connect.reads import plans_of
from deltalog.spark.connect.statement import (
    CONDITION,
    FORMAT,
    MARKER_PREFIX,
    POSITIONS,
    STATEMENT,
    StatementRequest,
)
from deltalog.spark.dml.own_frames import OwnFrames
from deltalog.spark.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.write.record import Record

_ERROR = re.compile(r"deltalog\.errors\.(\w+): (.*?)(?=\n\s*at |\n\nJVM stacktrace|\Z)", re.DOTALL)


class Table(NamedTuple):
    """A table at the version that a statement is based on."""

    version: int
    table_id: str
    uri: str
    schema: StructType
    generated: set[str]
    """The generated columns, in lower case."""
    tracks_rows: bool

    def column(self, name: str) -> StructField:
        """Returns the column with this name, which may differ in case."""
        found = [field for field in self.schema.fields if field.name == name]
        found += [field for field in self.schema.fields if field.name.lower() == name.lower()]
        if found:
            return found[0]
        raise InvalidArgumentError(
            f"the table {self.uri} has no column {name}; it has {', '.join(self.schema.fieldNames())}"
        )


class Target:
    """A table that statements change, identified by its path."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        alias: str | None,
        ask: Callable[..., Any],
        store: Mapping[str, str],
        own: OwnFrames,
    ) -> None:
        """Creates the target; `ask` makes the server execute a command of `sql/commands.py`; `store` has the store's
        options.
        """
        self._spark, self._path, self._ask, self._own = spark, path, ask, own
        self.alias, self.store = alias, store

    @property
    def spark(self) -> SparkSession:
        return self._spark

    @property
    def path(self) -> str:
        return self._path

    def begin(self, name: str, version: int | None = None) -> "Begun":
        """Begins a statement on a version, by default the newest.

        Raises an error if the table cannot be changed.
        """
        record = Record.of_client(self._spark)
        answer = self._ask(
            "statementTarget", name=name, version=version, app_transaction=record.app_transaction
        )
        table = Table(
            answer["version"],
            answer["table_id"],
            answer["uri"],
            StructType.fromJson(json.loads(answer["schema"])),
            {column.lower() for column in answer["generated"]},
            answer["tracks_rows"],
        )
        check_names(table.schema.fieldNames(), f"the table {table.uri}")
        return Begun(self, table, record, answer["applied"])

    def own_plans(self, expressions: Sequence[str | Column]) -> list[int]:
        """Returns the ids of the plans whose columns the expressions refer to, if the plans belong to frames of this
        table.
        """
        known = self._own.plan_ids
        return sorted(set().union(*(plans_of(self._spark, each) for each in expressions)) & known)

    def metrics(self, statement_id: str, version: int) -> dict[str, int]:
        """Returns the metrics of a statement that has read `version`; an empty result if it has committed nothing."""
        found = self._ask("statementMetrics", statement_id=statement_id, version=version)
        return {} if found is None else found


class Begun:
    """A statement that has begun on a version of its table."""

    def __init__(self, target: Target, table: Table, record: Record, is_applied: bool) -> None:
        self.target, self.table, self.is_applied = target, table, is_applied
        self._record = record
        self.statement_id = str(uuid.uuid4())

    @property
    def time_zone(self) -> str:
        return str(self.target.spark.conf.get("spark.sql.session.timeZone"))

    def rows(self, expressions: Sequence[str | Column], condition: str | None = None) -> DataFrame:
        """Returns the rows of the table with their positions, and with their ids if the table tracks rows.

        `expressions` are the statement's expressions, which may refer to columns of other frames of the table. Files
        without rows for which `condition` is true may be left out.
        """
        reader = self.target.spark.read.format(FORMAT).option("versionAsOf", self.table.version)
        reader = (
            reader.options(**self.target.store)
            .option(POSITIONS, "true")
            .option("rowIds", str(self.table.tracks_rows).lower())
        )
        if condition is not None:
            reader = reader.option(CONDITION, json.dumps([condition, self.time_zone]))
        rows = reader.load(self.target.path)
        if self.target.alias is not None:
            rows = rows.alias(self.target.alias)
        # The server looks up a column in the plan with the id of its frame. So each of these ids gets a plan.
        for plan_id in self.target.own_plans(expressions):
            rows = rows.where(sf.lit(True))
            plan: Any = rows._plan
            plan._root_plan_id = plan_id
        return rows

    def run(self, rows: DataFrame, **about: Any) -> dict[str, int]:
        """Makes the server carry out the statement, whose rows have marker columns, and returns its metrics."""
        request = StatementRequest(
            self.statement_id,
            self.table.version,
            self.table.table_id,
            app_transaction=self._record.app_transaction,
            user_metadata=self._record.user_metadata,
            **about,
        )
        with server_errors():
            writer = rows.write.format(FORMAT).mode("append").options(**self.target.store)
            writer.option(STATEMENT, request.to_json()).save(self.target.path)
        self._record.forget(self.target.spark)
        return self.target.metrics(self.statement_id, self.table.version)


def check_names(names: Sequence[str], where: str) -> None:
    """Raises an error if a column has a name that is reserved for the marker columns of statements."""
    for name in names:
        if name.lower().startswith(MARKER_PREFIX):
            raise UnsupportedFeatureError(
                f"{where} has the column '{name}'; under Spark Connect, names that begin with {MARKER_PREFIX} are for "
                "the columns that deltalog adds to the rows of a statement: rename it, or use a classic session"
            )


@contextmanager
def server_errors() -> Iterator[None]:
    """Raises errors of deltalog that the server's processes have raised, which Spark passes on as text."""
    try:
        yield
    except PySparkException as error:
        found = _ERROR.search(str(error))
        kind = None if found is None else getattr(deltalog.errors, found[1], None)
        if found is None or not isinstance(kind, type) or not issubclass(kind, DeltaError):
            raise
        raise kind(found[2].strip()) from error


def as_column(value: str | Column) -> Column:
    """Returns a condition or a value, which may be SQL text, as a column."""
    return sf.expr(value) if isinstance(value, str) else value


def named(frame: DataFrame, name: str) -> Column:
    """Returns a column of a DataFrame by its exact name."""
    column: Column = frame[quoted(name)]
    return column
