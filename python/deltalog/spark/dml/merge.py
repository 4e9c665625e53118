"""MERGE.

1. The source is evaluated once, with a number for each row, and kept by the executors.
2. Files of the target whose statistics hold none of the source's keys are left out, and the keys' range goes into the
   scan, for row groups and pages. Neither with WHEN NOT MATCHED BY SOURCE, for which every row of the target counts.
3. One job joins the target with the source: changed rows, removed positions, and the numbers of the source's rows that
   have matched. The source is broadcast while it is small.
4. The rows of the source that have not matched are inserted by a second job.

Several rows of the source may match one row of the target for some statements only, as in the JVM connector. Every pair
for which the condition of the MERGE is true counts, whether a clause applies to it or not:

| clauses for matched rows | other clauses | several matches |
| --- | --- | --- |
| one DELETE without a condition | any | the row is deleted, once |
| none | NOT MATCHED only | allowed: matched rows only tell which rows are not inserted |
| none | NOT MATCHED BY SOURCE, and others | refused |
| any others, such as DELETE with a condition | any | refused |
"""

from typing import Any

from py4j.protocol import Py4JJavaError

from deltalog.spark.dml import identities, lost_source
from deltalog.spark.dml.generated import Clause, left_out
from deltalog.spark.dml.statement import Statement, assigned_columns
from deltalog.spark.dml.text import matches_once
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.write import fit
from deltalog.spark.write.evolution import AUTO_MERGE
from deltalog.spark.write.identity import counted_columns
from deltalog.spark.write.interrupts import RunningWrite

_SOURCE = "__deltalog_source"
# Sources up to so many bytes are broadcast. Spark's own limit is for sizes that are guessed; this one is known.
_BROADCAST = 64 << 20


def merge(statement: Statement, running: RunningWrite) -> None:
    """Runs the jobs of a MERGE."""
    plan = statement.plan
    if not statement.target.evolves and (
        plan.withSchemaEvolution() or statement.settings.boolean(AUTO_MERGE)
    ):
        # The rule that adds the columns is one of the analyzer's.
        raise UnsupportedFeatureError(
            "MERGE cannot add columns in this session: call deltalog.spark.enable(session) for it, or add the columns "
            "first, for example with DeltaTable.alter"
        )
    statement.removes_once = matches_once(statement.text)
    source = _Source(statement)
    try:
        source.measure()
        _merge(statement, running, source)
    except Py4JJavaError as error:
        lost = lost_source.error_of(error.java_exception, source.id)
        if lost is None:
            raise
        raise lost from None
    finally:
        source.release()


def _merge(statement: Statement, running: RunningWrite, source: "_Source") -> None:
    jvm, plan = statement.jvm, statement.plan
    statement.source_rows = source.count
    filters = [] if statement.text.not_matched_by_source else source.filters()
    files = statement.planned(jvm.seq(filters), keeps_matches=bool(statement.text.not_matched))
    write = statement.target.write
    updates = _clauses(jvm, plan.matchedActions(), plan.notMatchedBySourceActions())
    inserts = _clauses(jvm, plan.notMatchedActions())
    computed = [column.lower() for column, _ in (*write.generated_columns, *write.identity_columns)]
    with statement.target.scan(files) as scan:
        plans = jvm.new("MergePlans", scan, plan, statement.removes_once)
        plans.resolve(jvm.seq(computed))
        groups = identities.groups_of(write, inserts)
        identities.check_assigned(write, set().union(*(columns for _, columns in updates)))
        rows = source.rows
        job = None
        if files.kept > 0:
            records = statement.has_feed and plans.changes()
            changed = plans.changed(source.plan, jvm.seq(filters), source.size() <= _BROADCAST, records)
            more = 1 if plans.inserts() else 0
            missing = left_out(write, updates)
            job = statement.run(changed, running, plans.changes(), missing, more, records)
        statement.plan_copies()
        if plans.inserts():
            if job is not None:
                number = jvm.static("MergePlans", "sourceNumber", source.plan)
                rows = rows.where(job.matches().excludes(number))
            records = statement.has_change_files()
            for numbers, given in groups:
                counted = counted_columns(write, given) if write.identity_columns else {}
                inserted = plans.inserted(rows.queryExecution().analyzed(), jvm.seq(numbers))
                missing = left_out(write, [clause for clause in inserts if clause[0] in numbers])
                statement.run(inserted, running, True, missing, records=records, counted=counted)


def _clauses(jvm: Jvm, *kinds: Any) -> list[Clause]:
    """Returns the clauses that write rows, with the numbers that `MergePlans.java` gives them."""
    actions = [action for kind in kinds for action in jvm.sequence(kind)]
    return [
        (number, assigned_columns(jvm, action.assignments()))
        for number, action in enumerate(actions, 1)
        if action.getClass().getSimpleName() != "DeleteAction"
    ]


class _Source:
    """The source, evaluated once. It is to be released."""

    def __init__(self, statement: Statement) -> None:
        jvm, self._jvm, self._statement = statement.jvm, statement.jvm, statement
        functions = jvm.functions
        given = fit.dataset(jvm, statement.session, statement.plan.sourceTable())
        id_column = functions.monotonically_increasing_id().alias(_SOURCE)
        self._kept = jvm.new("KeptRows", given.select(jvm.seq([functions.col("*"), id_column])))
        self.id = int(self._kept.id())
        self.plan = self._kept.plan()
        self.rows = fit.dataset(jvm, statement.session, self.plan)

    def measure(self) -> None:
        """Evaluates the rows, counts them and finds their keys. To be called first."""
        jvm, statement = self._jvm, self._statement
        # All are there before the job that looks at the keys: it would not know of rows that are computed anew while it
        # runs.
        self._kept.evaluate()
        self._stored = int(self._kept.bytes())
        keys = jvm.static("MergePlans", "keys", statement.plan)
        values = jvm.static("MergePlans", "sourceKeys", statement.plan, self.plan, keys)
        self._keys = jvm.items(keys)
        # Call a method of an object, because a call by reflection would wrap Spark's exceptions.
        self._summary = jvm.new("KeyJob", fit.dataset(jvm, statement.session, values)).run()
        self.count = int(self._summary.count())

    def release(self) -> None:
        """Lets the executors forget the rows."""
        self._kept.release()

    def filters(self) -> list[Any]:
        """Returns conditions that are true for all rows of the target that can match."""
        filters = self._jvm.items(self._jvm.static("MergePlans", "targetFilters", self._statement.plan))
        return filters + [key.filter(self._summary, index) for index, key in enumerate(self._keys)]

    def size(self) -> int:
        """Returns about how many bytes the source has."""
        guessed = self.count * int(self.rows.schema().defaultSize())
        return guessed if self._stored < 0 else self._stored
