"""A DELETE, UPDATE or MERGE that is being executed: its description, its target, and the jobs that it runs."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from deltalog._internal import AlreadyApplied, SparkPlan
from deltalog.filters import quoted
from deltalog.spark import schema
from deltalog.spark.dml.description import Description
from deltalog.spark.dml.generated import LeftOut
from deltalog.spark.dml.target import Target
from deltalog.spark.jvm import Jvm
from deltalog.spark.write import fit, rules
from deltalog.spark.write.balance import balance
from deltalog.spark.write.compaction import AutoCompaction
from deltalog.spark.write.identity import Counted, numbers
from deltalog.spark.write.interrupts import RunningWrite
from deltalog.spark.write.job import engine_info, job_text, receive
from deltalog.spark.write.record import log_applied
from deltalog.spark.write.rows import FileRows, described

Metrics = dict[str, int]
"""The metrics of a statement, under the JVM connector's names."""

_log = logging.getLogger("deltalog.spark")

_OPERATION = "__deltalog_operation"
# These values are the same as in `RowAction.java`.
_WRITE = 2
_COPY = 16
_CLAUSE_BITS = 8
# The number of marker columns after the table's columns: the action for the row, its file, and its position in the
# file.
_MARKERS = 3


class Statement:
    """A statement that is being executed."""

    def __init__(self, jvm: Jvm, session: Any, run: Any, description: Description) -> None:
        self.session = session
        # The `StatementRun` of the JVM, which executes the steps.
        self.run = run
        self.description = description
        self.text, self.settings = description.text, description.settings
        self.target = Target(jvm, session, description)
        if self.text.updates or self.text.not_matched:
            fit.check_policy(self.settings, self.target.uri)
        self.source_rows = 0
        self.removes_once = False
        self.rewrite_ms = 0
        # Whether the first job has recorded the changes. If so, it has recorded all of them.
        self._has_recorded = False
        self._copies: SparkPlan | None = None
        self._copies_with_removed = False
        # The settings for shuffling written rows, and for compaction after the commit.
        self._balance: dict[str, Any] | None = None
        self._compaction = AutoCompaction.of(self.settings)
        if self.target.applied is None:
            self._balance = balance(self.target.options, self.settings, self.target.write)
        if self.target.applied is None and self._may_record():
            self.target.statement.check_recordable()

    def planned(self, filters: str, keeps_matches: bool = False, removed: str | None = None) -> Any:
        """Returns the files that may contain rows for which the filters are true. `FilterText.java` has written the
        filters.

        With `keeps_matches`, the statement also depends on the unchanged rows of these files. If the statement removes
        exactly the rows that meet the condition `removed`, files that contain only such rows are removed without being
        read, and are not returned.
        """
        time_zone, source_filters = self.settings.time_zone, self.target.source_filters
        files = self.target.statement.plan(
            filters, time_zone, self.has_subquery, keeps_matches, removed, source_filters
        )
        table = self.target.snapshot
        _log.info(
            "%s v%d: %s looks for rows in %d of %d files",
            table.uri,
            table.version,
            self.text.name,
            files.kept,
            files.total,
        )
        return files

    @property
    def has_subquery(self) -> bool:
        """Whether the statement reads more than its target."""
        return self.description.has_subquery

    @property
    def _columns(self) -> list[str]:
        """The names of the table's columns, including columns that the statement adds."""
        schema_json = self.target.write.table_schema_json
        return [] if schema_json is None else schema.field_names(schema_json)

    def _may_record(self) -> bool:
        return self.has_feed and (self.text.updates or (self.text.deletes and not self.uses_vectors))

    @property
    def has_feed(self) -> bool:
        """Whether the table has a change data feed."""
        return self.target.statement.has_feed

    @property
    def uses_vectors(self) -> bool:
        """Whether rows are deleted by deletion vectors. Otherwise, the files with these rows are rewritten."""
        return self.target.statement.uses_vectors

    def change(
        self,
        step: Callable[[str], Any],
        running: RunningWrite,
        writes: bool,
        left_out: LeftOut,
        more: int = 0,
        records: bool = False,
        counted: Counted | None = None,
    ) -> None:
        """Carries out a step of the statement: passes the description of a job to the `StatementRun`. The rows have
        marker columns, and the table's columns if the step `writes` rows.

        `left_out` are the generated columns to compute; `more` is the number of additional marker columns. If the step
        `records` changes, it also writes them to the change data feed. The identity columns `counted` get new values in
        all rows.
        """
        write = self.target.write
        rows = FileRows({}, [])
        if writes:
            is_written = f"{quoted(_OPERATION)} & {_WRITE | _COPY} = {_WRITE}"
            missing = {column for column, clauses in left_out.items() if clauses is None}
            partly = {
                column: f"shiftright({quoted(_OPERATION)}, {_CLAUSE_BITS}) IN ({', '.join(map(str, clauses))})"
                for column, clauses in left_out.items()
                if clauses is not None
            }
            parts = {
                "numbers": numbers(counted or {}, self._columns),
                "rules": rules.enforced(write, self._columns, missing, is_written, partly),
                "files": fit.file_columns(write, self._columns, self.target.tracking + _MARKERS + more),
                "balance": self._balance,
            }
            rows = described(write, parts)
        self._has_recorded |= records
        marked = self._marked(_MARKERS + more, self.removes_once, records)
        self._receive(step, job_text(rows, write, self.target.options, running, marked), running)
        if counted:
            write.end_identity_values()

    def _marked(self, markers: int, removes_once: bool, records: bool) -> dict[str, Any]:
        """Describes the rows of a job, for `MarkedRows.java`."""
        return {
            "markers": markers,
            "removesOnce": removes_once,
            "records": records,
            "tracking": self.target.tracking,
        }

    def _receive(self, step: Callable[[str], Any], text: str, running: RunningWrite) -> None:
        running.check()
        receive(self.target.write, partial(step, text), self.run.reports)

    def plan_copies(self) -> None:
        """Plans to copy the remaining rows of the files with deleted rows. Must be called after the job that finds the
        deleted rows. Does nothing if the table uses deletion vectors.

        If the table has a change data feed, and the first job did not record the changes, the plan also contains the
        deleted rows of all files.
        """
        if not self.uses_vectors:
            self._copies_with_removed = self.has_feed and not self._has_recorded
            self._copies = self.target.statement.copies(self.target.write, self._copies_with_removed)

    def has_change_files(self) -> bool:
        """Returns whether the commit has change data files. If so, they must contain all changes.

        Change data files are needed for changed rows, and for copied rows, which readers would otherwise take for new
        rows. They are not needed for removed files and deletion vectors, because readers can see which rows these have
        removed. (PROTOCOL, "Change Data Files".)
        """
        statement = self.target.statement
        return statement.has_change_files(self.target.write) or (self.has_feed and self._copies is not None)

    def copy(self, running: RunningWrite) -> None:
        """Makes the copies, and records the deleted rows if the plan contains them."""
        started = time.monotonic()
        if self._copies is not None:
            write = self.target.write
            files = fit.file_columns(write, self._columns, self.target.tracking + _MARKERS)
            rows = described(write, {"files": files, "balance": self._balance})
            marked = self._marked(_MARKERS, removes_once=False, records=self._copies_with_removed)
            text = job_text(rows, write, self.target.options, running, marked)
            with self.target.scan(self._copies) as relation:
                self._receive(partial(self.run.copy, relation), text, running)
        self.rewrite_ms = round(1000 * (time.monotonic() - started))

    def commit(self, scan_ms: int) -> tuple[Metrics, int | None]:
        """Commits the statement. Returns its metrics, and the version if one was committed."""
        target = self.target
        done = target.statement.commit(
            target.write,
            self.text,
            engine_info(self.settings),
            target.record.user_metadata,
            self.source_rows,
            self.removes_once,
            scan_ms,
            self.rewrite_ms,
            self._compaction,
        )
        if isinstance(done, AlreadyApplied):
            return self.skip(done), None
        target.record.finish(self.session)
        metrics, versions = done
        return metrics, versions[0] if versions else None

    def skip(self, applied: AlreadyApplied) -> Metrics:
        """Ends a statement that its application has already recorded."""
        self.target.record.finish(self.session)
        log_applied(applied, self.target.uri)
        return {}
