"""`DeltaTable.merge` under Spark Connect.

1. The source is evaluated once. Each row gets a number, and the executors keep the rows.
2. Rows of the target that match are joined with the source, for the clauses WHEN MATCHED.
3. Rows of the target that match no row of the source are added, for WHEN NOT MATCHED BY SOURCE.
4. The rows of the source whose numbers do not occur in the second step are added, for WHEN NOT MATCHED. If there are
   clauses for both, the executors keep the rows of the second step, too.

One job writes all of these rows. In each step, the clauses see only the columns that they may use.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField

from deltalog.spark.connect.checkpoint import checkpointed
from deltalog.spark.connect.reads import may_query, source_reads
from deltalog.spark.connect.statement import BY_SOURCE, FILE, MATCHED, OPERATION, REMOVE, ROW, ROW_ID, WRITE
from deltalog.spark.connect.target import Begun, Target, as_column, check_names, named
from deltalog.spark.connect.values import Assignments
from deltalog.spark.connect.verbs import analyzed, markers, row_ids, text_of
from deltalog.spark.dml.clauses import Condition, MergeClause
from deltalog.spark.dml.text import StatementText, matches_once
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.write.evolution import AUTO_MERGE

_SOURCE = "__deltalog_source"
_CLAUSE = "__deltalog_clause"
_MATCHED = "__deltalog_matched"
# A source is broadcast if it has at most this number of rows and of values. For larger sources, Spark decides at run
# time.
_BROADCAST_ROWS = 100_000
_BROADCAST_VALUES = 2_000_000


class _Clauses(NamedTuple):
    """The clauses of one kind, in order, and the assignments of each, which are None for a clause that deletes."""

    clauses: Sequence[MergeClause]
    assignments: list[Assignments | None]

    @classmethod
    def of(cls, begun: Begun, source: DataFrame, clauses: Sequence[MergeClause]) -> "_Clauses":
        made: list[Assignments | None] = []
        for clause in clauses:
            if clause.action == "delete":
                made.append(None)
            elif clause.values is None:
                made.append(Assignments.all_of(begun.table, source))
            else:
                made.append(Assignments(begun.table, begun.target.alias, clause.values))
        return cls(clauses, made)

    @property
    def assigning(self) -> list[Assignments]:
        return [assigned for assigned in self.assignments if assigned is not None]

    def fit(self, begun: Begun, rows: DataFrame) -> None:
        """Casts the values, which are expressions over `rows`, to the types of their columns."""
        conditions = [as_column(clause.condition) for clause in self.clauses if clause.condition is not None]
        values = [value for assigned in self.assigning for value in assigned.values]
        types = iter(analyzed(begun, rows, conditions, values))
        for assigned in self.assigning:
            assigned.fit(list(islice(types, len(assigned.values))))

    def number(self) -> Column:
        """Returns the number of the first clause whose condition is true, counted from 1, or 0."""
        number: Column | None = None
        for index, clause in enumerate(self.clauses):
            holds = sf.lit(True) if clause.condition is None else as_column(clause.condition)
            number = sf.when(holds, index + 1) if number is None else number.when(holds, index + 1)
        return sf.lit(0) if number is None else number.otherwise(0)


def merge(
    target: Target,
    source: DataFrame,
    condition: Condition,
    matched: Sequence[MergeClause],
    not_matched: Sequence[MergeClause],
    by_source: Sequence[MergeClause],
    evolves: bool,
) -> dict[str, int]:
    """Merges `source` into the table, and returns the metrics of the commit."""
    if evolves or str(target.spark.conf.get(AUTO_MERGE, "false")).strip().lower() == "true":
        raise UnsupportedFeatureError(
            f"MERGE cannot add columns under Spark Connect (withSchemaEvolution, {AUTO_MERGE}): add them first, for "
            "example with deltalog.DeltaTable.alter"
        )
    begun = target.begin("MERGE")
    # From here on, a commit is a conflict if it changes rows of the table that the source reads.
    read = source_reads(source, begun.table.uri)
    if read.versions and min(read.versions) < begun.table.version:
        begun = target.begin("MERGE", min(read.versions))
    if begun.is_applied:
        return {}
    check_names(source.columns, "the source")
    expressions = [condition]
    for clause in (*matched, *not_matched, *by_source):
        expressions += [] if clause.condition is None else [clause.condition]
        expressions += list((clause.values or {}).values())
    reads_target = read.reads_target or any(may_query(target.spark, each) for each in expressions)
    texts = [
        [(text_of(clause.condition), clause.action) for clause in clauses]
        for clauses in (matched, not_matched, by_source)
    ]
    with ExitStack() as stack:
        numbered = source.select("*", sf.monotonically_increasing_id().alias(_SOURCE))
        evaluated = stack.enter_context(checkpointed(numbered))
        joined = _Joined(begun, begun.rows(expressions), source, evaluated, as_column(condition), stack)
        of_matched, of_target, of_source = (
            _Clauses.of(begun, joined.source, clauses) for clauses in (matched, by_source, not_matched)
        )
        changing = of_matched.assigning + of_target.assigning
        text = StatementText("MERGE", text_of(condition), *texts)
        once = matches_once(text)
        rows = joined.rows_of(of_matched, of_target, of_source, once)
        return begun.run(
            rows,
            text=text,
            reads=None if reads_target else ("true", begun.time_zone),
            assigned=sorted(set().union(*(assigned.columns for assigned in changing))),
            given=[sorted(assigned.columns) for assigned in of_source.assigning],
            matches_once=once,
            source_rows=joined.source_rows,
        )


class _Joined:
    """The rows of the target, and the rows of an evaluated source, before they are joined."""

    def __init__(
        self,
        begun: Begun,
        target: DataFrame,
        source: DataFrame,
        evaluated: DataFrame,
        condition: Column,
        stack: ExitStack,
    ) -> None:
        self._begun, self._condition, self._stack = begun, condition, stack
        self.target, self.source = target, _as_source(evaluated, source)
        self.source_rows = evaluated.count()

    def rows_of(self, matched: _Clauses, by_source: _Clauses, not_matched: _Clauses, once: bool) -> DataFrame:
        """Returns the rows to write and to remove, according to the clauses of each kind.

        If each row may match only `once`, the result also contains rows that match but are not changed.
        """
        pairs = self._join("inner")
        for clauses, frame in ((matched, pairs), (by_source, self.target), (not_matched, self.source)):
            clauses.fit(self._begun, frame)
        assigning = [*matched.assigning, *by_source.assigning, *not_matched.assigning]
        _check_generated(self._begun, assigning)
        written = _written(self._begun, assigning)
        parts = []
        if matched.clauses or once:
            extra = [named(self.source, _SOURCE)] if not_matched.clauses else []
            pairs = self._changed(pairs, matched, written, MATCHED if once else 0, extra)
            if not_matched.clauses:
                pairs = self._stack.enter_context(checkpointed(pairs))
            parts.append(pairs.where(sf.col(OPERATION) != 0).drop(_SOURCE))
        if by_source.clauses:
            others = self._changed(self._join("left_anti"), by_source, written, BY_SOURCE, [])
            parts.append(others.where(sf.col(OPERATION) != BY_SOURCE))
        if not_matched.clauses:
            numbers = pairs.select(sf.col(_SOURCE).alias(_MATCHED)).distinct()
            parts.append(self._inserted(numbers, not_matched, written))
        return reduce(DataFrame.unionByName, parts)

    def _join(self, how: str) -> DataFrame:
        count = self.source_rows
        is_small = count <= _BROADCAST_ROWS and count * len(self.source.columns) <= _BROADCAST_VALUES
        source = self.source.hint("broadcast") if is_small else self.source
        return self.target.join(source, self._condition, how)

    def _changed(
        self,
        rows: DataFrame,
        clauses: _Clauses,
        written: list[StructField] | None,
        bits: int,
        extra: list[Column],
    ) -> DataFrame:
        """Returns rows of the target with their new values and the marker columns. `bits` are set in all operations."""
        numbered = rows.withColumn(_CLAUSE, clauses.number())
        number = sf.col(_CLAUSE)
        columns = []
        for field in written or []:
            old = value = named(self.target, field.name)
            for index, assignments in enumerate(clauses.assignments, 1):
                new = None if assignments is None else assignments.updated(field, old)
                if new is not None:
                    value = sf.when(number == index, new).otherwise(value)
            columns.append(value.alias(field.name))
        if written is not None:
            columns += row_ids(self._begun, self.target)
        operation = sf.lit(bits)
        for index, assignments in enumerate(clauses.assignments, 1):
            action = REMOVE if assignments is None else REMOVE | WRITE
            operation = sf.when(number == index, action | bits).otherwise(operation)
        return numbered.select(*columns, *markers(self.target, operation), *extra)

    def _inserted(
        self, matched: DataFrame, clauses: _Clauses, written: list[StructField] | None
    ) -> DataFrame:
        """Returns the rows to insert, from the rows of the source whose numbers are not in `matched`."""
        is_matched = named(self.source, _SOURCE) == sf.col(_MATCHED)
        others = self.source.join(matched, is_matched, "left_anti")
        numbered = others.withColumn(_CLAUSE, clauses.number()).where(sf.col(_CLAUSE) > 0)
        columns = []
        for field in written or []:
            value = sf.lit(None).cast(field.dataType)
            for index, assignments in enumerate(clauses.assignments, 1):
                if assignments is not None:
                    new = assignments.inserted(field)
                    value = sf.when(sf.col(_CLAUSE) == index, new).otherwise(value)
            columns.append(value.alias(field.name))
        if self._begun.table.tracks_rows:
            columns.append(sf.lit(None).cast(LongType()).alias(ROW_ID))
        places = [sf.lit(0).cast("int").alias(FILE), sf.lit(0).cast("long").alias(ROW)]
        return numbered.select(*columns, sf.lit(WRITE).cast("int").alias(OPERATION), *places)


def _as_source(evaluated: DataFrame, source: DataFrame) -> DataFrame:
    """Returns the evaluated rows of the source as a DataFrame. Its columns can be found by the same names, and through
    the same DataFrames, as in the source.
    """
    plan: Any = source._plan
    outer: list[tuple[str, int]] = []
    while type(plan).__name__ == "SubqueryAlias":
        outer.append((plan._alias, plan._root_plan_id))
        plan = plan._child
    table = getattr(plan, "_table_name", None)
    name = "source" if table is None else table.split(".")[-1].strip("`")
    for alias, plan_id in [(name, plan._root_plan_id), *reversed(outer)]:
        evaluated = evaluated.alias(alias)
        made: Any = evaluated._plan
        made._root_plan_id = plan_id
    return evaluated


def _written(begun: Begun, assigning: list[Assignments]) -> list[StructField] | None:
    """Returns the columns of the rows to write; None if no rows are written.

    Generated columns to which no clause assigns a value are computed when rows are written.
    """
    if not assigning:
        return None
    computed = begun.table.generated - set().union(*(assignments.columns for assignments in assigning))
    return [field for field in begun.table.schema.fields if field.name.lower() not in computed]


def _check_generated(begun: Begun, assigning: list[Assignments]) -> None:
    """Raises an error if only some clauses assign a value to a generated column: the other clauses would have to
    compute it.
    """
    given = [begun.table.generated & assignments.columns for assignments in assigning]
    if any(clause != given[0] for clause in given):
        raise UnsupportedFeatureError(
            "a MERGE in which only some clauses give a value to the same generated column is not supported yet by "
            "deltalog: leave the generated columns out, so that they are computed"
        )
