"""Executes MERGE.

1. The source is evaluated once. Each row gets a number, and the executors keep the rows.
2. Files of the target whose statistics exclude all keys of the source are left out. The range of the keys is passed
   to the scan, for skipping row groups and pages. Neither is done with WHEN NOT MATCHED BY SOURCE, because it needs
   every row of the target.
3. One job joins the target with the source. It writes changed rows, and reports removed positions and the numbers of
   the source's rows that have matched. A small source is broadcast.
4. The rows of the source without a match are inserted by a second job.

As in the JVM connector, only some statements allow several rows of the source to match one row of the target. Every
pair of rows for which the condition of the MERGE is true counts as a match, even if no clause applies to it:

| clauses for matched rows | other clauses | several matches |
| --- | --- | --- |
| one DELETE without a condition | any | the row is deleted, once |
| none | NOT MATCHED only | allowed: matches only determine which rows are not inserted |
| none | NOT MATCHED BY SOURCE, and others | refused |
| any others, such as DELETE with a condition | any | refused |
"""

import json
from functools import partial
from typing import Any

from deltalog.spark.dml import identities, lost_source
from deltalog.spark.dml.generated import left_out
from deltalog.spark.dml.statement import Statement
from deltalog.spark.dml.text import matches_once
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.jvm.py4j_errors import Py4JJavaError
from deltalog.spark.write.evolution import AUTO_MERGE
from deltalog.spark.write.identity import counted_columns
from deltalog.spark.write.interrupts import RunningWrite

# Sources up to this many bytes are broadcast. Spark's own limit applies to estimated sizes; this size is known.
_BROADCAST = 64 << 20


def merge(statement: Statement, running: RunningWrite) -> None:
    """Runs the jobs of a MERGE."""
    run, description = statement.run, statement.description
    wants_columns = description.with_schema_evolution or statement.settings.boolean(AUTO_MERGE)
    if wants_columns and not statement.target.evolves:
        # Columns can only be added by the rule in the session's analyzer.
        raise UnsupportedFeatureError(
            "MERGE cannot add columns in this session: call deltalog.spark.enable(session) for it, or add the columns "
            "first, for example with DeltaTable.alter"
        )
    statement.removes_once = matches_once(statement.text)
    try:
        _merge(statement, running)
    except Py4JJavaError as error:
        lost = lost_source.error_of(error.java_exception, int(run.sourceId()))
        if lost is None:
            raise
        raise lost from None
    finally:
        run.release()


def _merge(statement: Statement, running: RunningWrite) -> None:
    run, write = statement.run, statement.target.write
    updates, inserts = statement.description.updates, statement.description.inserts
    measured = json.loads(run.measure(running.tag))
    statement.source_rows = measured["count"]
    files = statement.planned(measured["filters"], keeps_matches=bool(inserts))
    computed = [column.lower() for column, _ in (*write.generated_columns, *write.identity_columns)]
    with statement.target.scan(files) as relation:
        run.resolve(relation, json.dumps(computed), statement.removes_once)
        groups = identities.groups_of(write, inserts)
        identities.check_assigned(write, set().union(*(columns for _, columns in updates)))
        if files.kept > 0:
            records = statement.has_feed and bool(updates)

            def change(text: str) -> Any:
                return run.change(text, records, _BROADCAST)

            missing = left_out(write, updates)
            # One more marker column contains the number of the source's row, which decides which rows are inserted.
            statement.change(change, running, bool(updates), missing, 1 if inserts else 0, records)
        statement.plan_copies()
        if inserts:
            has_change_files = statement.has_change_files()
            for numbers, given in groups:
                counted = counted_columns(write, given) if write.identity_columns else {}
                missing = left_out(write, [clause for clause in inserts if clause[0] in numbers])
                step = partial(run.insert, json.dumps(numbers))
                statement.change(step, running, True, missing, records=has_change_files, counted=counted)
