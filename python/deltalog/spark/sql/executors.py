"""Runs OPTIMIZE and REORG. Spark's tasks write the new files.

```text
core: bins of old files ──► Spark: one task for each new file, which has the rows ──► core: one commit for each batch
                            of a bin in their order, or a part of the curve
```

- The core plans and commits; the driver reads no rows. The reports of the tasks are compared with the plan before a
  batch is committed (`SparkOptimize`).
- The driver handles small tables (`division`), single files, and tables that Spark's own reader cannot read.
"""

import contextlib
import json
import logging
import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from deltalog._internal import DeltaError, Snapshot, SparkOptimize, UnsupportedFeatureError
from deltalog.commit import CommitArguments
from deltalog.spark import schema
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import last_location
from deltalog.spark.options import Options
from deltalog.spark.read.format import file_format
from deltalog.spark.read.planner import StatementPlanner, kept
from deltalog.spark.read.relation import statement_relation
from deltalog.spark.sql.division import least_size, reason_for_driver
from deltalog.spark.write import fit
from deltalog.spark.write.interrupts import running_write
from deltalog.spark.write.job import job_text, run_job
from deltalog.spark.write.rows import FileRows, described
from deltalog.spark.write.settings import Settings

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
"""The JVM connector's setting for the size of new files in bytes, which overrides the table's."""

# The number of marker columns after the columns of the files: the number of the old file, and the row's position in it.
_MARKERS = 2
# The number of columns after the markers if rows are ordered: the task that writes the row, and its position there.
_KEYS = 2

_log = logging.getLogger("deltalog.spark")


class Executors(NamedTuple):
    """A classic session, whose tasks can write files."""

    jvm: Jvm
    session: Any
    """The JVM's SparkSession."""

    @classmethod
    def of(cls, spark: Any) -> "Executors":
        return cls(Jvm.of(spark), spark._jsparkSession)

    def optimize(
        self,
        snapshot: Snapshot,
        predicate: str | None,
        commit: CommitArguments,
        *,
        purges: bool = False,
        z_order: tuple[Sequence[str], str] | None = None,
        full: bool = False,
    ) -> dict[str, Any]:
        """Carries out an OPTIMIZE or REORG: combines small files, rewrites files to remove deleted data, orders rows
        along a curve, or clusters new files or all files of a clustered table. Returns the metrics.
        """
        plan = SparkOptimize.begin(snapshot, predicate, purges, commit, self.target_size(), z_order, full)
        reason = self._reason_for_driver(snapshot, plan)
        name = "REORG" if purges else "OPTIMIZE"
        if reason is not None:
            _log.info("%s v%d: the driver carries out %s: %s", snapshot.uri, snapshot.version, name, reason)
            metrics, _ = plan.execute()
            return metrics
        for batch in range(plan.batches):
            self._write(snapshot, plan, batch, name)
        metrics, _ = plan.finish()
        if metrics["numBinsGivenUp"]:
            _log.warning(
                "%s v%d: %s did not rewrite %d of its bins, because other writers changed their rows; "
                "run it again when fewer statements change the table",
                snapshot.uri,
                snapshot.version,
                name,
                metrics["numBinsGivenUp"],
            )
        return metrics

    def target_size(self) -> int | None:
        """Returns the size of new files that the session requests, in bytes.

        Raises `InvalidArgumentError` if the setting has an invalid value.
        """
        return Settings.of(self.jvm, self.session).size(MAX_FILE_SIZE, least=1)

    def _reason_for_driver(self, snapshot: Snapshot, plan: SparkOptimize) -> str | None:
        """Returns the reason why the driver writes the files; None if Spark's tasks write them."""
        if plan.bins == 0:
            return "there is nothing to do"
        reason = reason_for_driver(self.jvm, self.session, plan.bytes, [last_location(snapshot.uri)])
        if reason is not None:
            return reason
        if plan.tasks == 1 and least_size(self.jvm, self.session) != 0:
            return "the files become one file"
        try:
            file_format(self.session, snapshot, is_for_statement=True)
        except UnsupportedFeatureError as error:
            return str(error)
        return None

    def _write(self, snapshot: Snapshot, plan: SparkOptimize, batch: int, name: str) -> None:
        """Writes and commits a batch. If anything fails before the commit, the new files are deleted."""
        write = plan.write()
        outputs = plan.outputs(batch)
        bins = self.jvm.new("Bins", json.dumps(outputs))
        ordering = plan.ordering if any(is_ordered for _, _, is_ordered, *_ in outputs) else None
        session = self.jvm.static("BinRows" if ordering is None else "OrderedRows", "session", self.session)
        tracking = len(snapshot.row_tracking_columns or ())
        more = tracking + _MARKERS + (0 if ordering is None else _KEYS)
        files = fit.file_columns(write, schema.field_names(snapshot.schema_json), more)
        in_files = described(write, {"files": files})
        made, columns = json.dumps(in_files.parts), json.dumps(in_files.partition_columns)
        are_last = write.directory_columns is not None
        told = None
        with kept(StatementPlanner(snapshot, plan.files(batch))) as key:
            with running_write(session) as running, running.tagging():
                try:
                    relation = statement_relation(session, snapshot, key, name)
                    scan = self.jvm.static("BinRows", "scan", session, relation)
                    if ordering is None:
                        rows = self.jvm.static("FileRows", "of", session, scan, made)
                        moved = self.jvm.static(
                            "BinRows", "packed", session, rows, bins, columns, are_last, more
                        )
                    else:
                        by, is_hilbert, bits = ordering
                        ordered = self.jvm.new(
                            "OrderedRows", session, scan, bins, json.dumps(by), is_hilbert, bits
                        )
                        counts = struct.unpack(f">{sum(count for count, *_ in outputs)}q", ordered.counts())
                        told = counts, partial(_places, session, ordered, snapshot)
                        rows = self.jvm.static("FileRows", "of", session, ordered.keyed(), made)
                        moved = ordered.shuffled(rows, columns, are_last, more)
                    marked = self.jvm.new("BinRows", bins, tracking)
                    text = job_text(FileRows({}, []), write, Options({}), running)
                    run_job(self.jvm, session, moved, text, write, running, marked)
                    running.begin_commit()
                except BaseException:
                    with contextlib.suppress(DeltaError):  # The first error is the one to raise.
                        write.abort()
                    raise
            # The scan is still needed to find rows that other writers have deleted.
            plan.commit(batch, write, told)


def _places(session: Any, ordered: Any, snapshot: Snapshot, rows: bytes) -> bytes | None:
    """Finds rows in the new files (`OrderedRows.find`). Returns None if they cannot be found; the files of their bins
    are then not replaced.

    An interrupt ends the search and the commit.
    """
    with running_write(session) as running, running.tagging():
        try:
            found = ordered.find(rows)
        except Exception as error:  # noqa: BLE001 (whatever fails, the bins stay as they are)
            running.check()
            _log.warning(
                "%s v%d: rows that other writers have deleted could not be found: %s",
                snapshot.uri,
                snapshot.version,
                error,
            )
            return None
        running.begin_commit()
    return None if found is None else bytes(found)
