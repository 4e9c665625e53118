"""The table that a statement changes, at the version on which the statement is based."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deltalog._internal import AlreadyApplied, Snapshot, SparkPlan, SparkStatement
from deltalog.spark import schema
from deltalog.spark.dml.description import Description
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import location_of, uri_of
from deltalog.spark.read.planner import StatementPlanner, kept
from deltalog.spark.read.relation import statement_relation
from deltalog.spark.write.base import own_filters, own_rows
from deltalog.spark.write.record import Record


class Target:
    """The target of a statement."""

    def __init__(self, jvm: Jvm, session: Any, description: Description) -> None:
        self._session, self._name = session, description.text.name
        if not description.is_table:
            raise UnsupportedFeatureError(
                f"{self._name} changes rows of a table only, not of a view, which may leave out rows or compute columns"
            )
        self.options = description.options
        location = location_of(jvm, session, self.options)
        location.ensure_in_reach()
        self.uri = location.uri
        roots = [uri_of(jvm, session, root) for root in self.options.allowed_roots]
        # The version that Spark has resolved. If the statement reads the table more than once, this is the oldest
        # version.
        own = own_rows(description.sources, self.uri, roots)
        if own is None:
            raise InvalidArgumentError(
                f"the table {self.uri} is read at an older version, which cannot be changed"
            )
        self.snapshot: Snapshot = own.base
        # Conditions that describe which rows of the table the source of a MERGE reads.
        self.source_filters = own_filters(description.other_sources, self.uri)
        self.record = Record.of_session(self.options, description.settings)
        # Whether the statement may add columns to the table.
        self.evolves = description.evolved is not None
        data_schema = None if description.evolved is None else schema.of_data(description.evolved)
        begun = SparkStatement.begin(self.snapshot, self.record.app_transaction, data_schema)
        # Set if the table has already recorded this statement for its application. Then the statement is skipped.
        self.applied = begun if isinstance(begun, AlreadyApplied) else None
        if not isinstance(begun, AlreadyApplied):
            self.statement, self.write = begun

    @contextmanager
    def scan(self, plan: SparkPlan) -> Iterator[str]:
        """Yields the description of a relation that reads the planned files. It is valid inside the `with` block."""
        with kept(StatementPlanner(self.snapshot, plan)) as key:
            yield statement_relation(self._session, self.snapshot, key, self._name)

    @property
    def tracking(self) -> int:
        """The number of row tracking columns in the files: 2 (row id and row commit version), or 0."""
        return len(self.snapshot.row_tracking_columns or ())
