"""Executes DELETE, UPDATE and MERGE.

```text
rows of the files that may match ──► condition, new values ──► one job: positions of removed rows, new files
                                                                  │ with deletion vectors: commit
                                                                  ▼ else
                            the other rows of the files concerned ──► a second job: copies ──► commit
```

- Spark has resolved and checked the statement. Its expressions refer to columns of the target by ids. The scan of the
  files uses the same ids (`StatementScan.java`).
- An updated row is passed to the job as one row, which has the old position and the new values (`RowAction.java`).
- Without deletion vectors, a second job copies the other rows. It skips the removed positions as if they were in a
  deletion vector, so no condition is evaluated twice. If the condition of an UPDATE only depends on the row, the
  statement first finds the files by reading the condition's columns, and then writes all of their rows in one job.
"""

import contextlib
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from deltalog._internal import DeltaError
from deltalog.spark.dml import identities
from deltalog.spark.dml.description import Description
from deltalog.spark.dml.generated import left_out
from deltalog.spark.dml.merge import merge
from deltalog.spark.dml.statement import Metrics, Statement
from deltalog.spark.jvm import Jvm
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.interrupts import RunningWrite, running_write


def execute(jvm: Jvm, session: Any, run: Any, description: str) -> tuple[str, Metrics]:
    """Executes a resolved DELETE, UPDATE or MERGE. Returns the name of the statement, and its metrics.

    `run` is the `StatementRun` of the statement in the JVM, and `description` is its description as JSON.

    If anything fails before the commit, the written files are deleted.
    """
    kinds: dict[str, Callable[[Statement, RunningWrite], None]] = {
        "DELETE": _delete,
        "UPDATE": _update,
        "MERGE": merge,
    }
    statement = Statement(jvm, session, run, Description.of(description))
    if statement.target.applied is not None:
        return statement.text.name, statement.skip(statement.target.applied)
    statement.settings.check_calendar()
    started = time.monotonic()
    with running_write(session) as running:
        try:
            kinds[statement.text.name](statement, running)
            scan_ms = round(1000 * (time.monotonic() - started))
            statement.copy(running)
            running.begin_commit()
        except BaseException:
            with contextlib.suppress(DeltaError):  # The first error is the one to raise.
                statement.target.write.abort()
            raise
    metrics, version = statement.commit(scan_ms)
    if version is not None:
        refresh(jvm, session, statement.target.uri, version)
    return statement.text.name, metrics


def _delete(statement: Statement, running: RunningWrite) -> None:
    filters = json.loads(statement.run.filters())
    # If a commit has change data files, they must contain all changes. So the job also reads files that could be
    # removed as a whole without being read.
    reads_all = statement.has_feed and not statement.uses_vectors
    files = statement.planned(filters["stored"], removed=None if reads_all else filters["exact"])
    if files.kept > 0:
        with statement.target.scan(files) as relation:
            step = partial(statement.run.delete, relation)
            statement.change(step, running, writes=False, left_out={})
    statement.plan_copies()


def _update(statement: Statement, running: RunningWrite) -> None:
    run, write = statement.run, statement.target.write
    files = statement.planned(json.loads(run.filters())["stored"])
    assigned = statement.description.assigned
    identities.check_assigned(write, assigned)
    records = statement.has_feed
    rewrites = False
    if statement.text.predicate is not None and not statement.uses_vectors and not statement.has_subquery:
        # Finds the files that contain rows to change, by reading only the columns of the condition. These files are
        # then rewritten as a whole. The result is None, and the job below finds the rows, if the statement sees values
        # that differ from those in the files.
        with statement.target.scan(files) as relation:
            numbers = run.changedFiles(relation, running.tag)
        if numbers is not None:
            rewrites = True
            files = statement.target.statement.rewrites(
                {int(number) for number in numbers.split(",") if number}
            )
    if files.kept > 0:
        with statement.target.scan(files) as relation:

            def step(text: str) -> Any:
                return run.update(relation, text, rewrites, records)

            missing = left_out(write, [(1, assigned)])
            statement.change(step, running, writes=True, left_out=missing, records=records)
    if not rewrites:
        statement.plan_copies()


def counts(name: str, metrics: Metrics) -> list[int]:
    """Returns the numbers in the result of a statement: affected rows, and for MERGE updated, deleted and inserted."""
    if name == "MERGE":
        names = ("numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsInserted")
        found = [metrics.get(metric, 0) for metric in names]
        return [sum(found), *found]
    return [metrics.get("numDeletedRows" if name == "DELETE" else "numUpdatedRows", 0)]
