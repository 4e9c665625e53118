"""`DeltaTable.delete`, `update` and `merge`: builds the plans that Spark's parser would build for the statements."""

import json
import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from deltalog.errors import hinted
from deltalog.spark.connect import merge as connect_merge
from deltalog.spark.connect import verbs as connect_verbs
from deltalog.spark.connect.carried import ServerTarget
from deltalog.spark.connect.target import Target
from deltalog.spark.dml.clauses import Condition, MergeClause, Values, values_argument
from deltalog.spark.dml.execute import counts, execute
from deltalog.spark.dml.statement import Metrics
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.jvm import Jvm
from deltalog.spark.sql.names import is_connect

_AFFECTED = StructType([StructField("num_affected_rows", LongType(), False)])
_MERGED = StructType(
    [
        StructField(name, LongType(), False)
        for name in ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    ]
)


# The target of a statement: a DataFrame in a classic session; under Spark Connect an object that makes the client or
# the server carry out the statement.
Changed = DataFrame | ServerTarget | Target


def with_own_columns(spark: SparkSession, rows: DataFrame, columns_id: str) -> DataFrame:
    """Returns a DataFrame with columns to which conditions and values of the table's statements may refer."""
    own = Jvm.of(spark).new("OwnColumns", columns_id)
    return DataFrame(own.shown(spark._jsparkSession, rows._jdf), spark)


def named(spark: SparkSession, rows: DataFrame, name: str) -> DataFrame:
    """Returns a DataFrame of a table under the table's catalog name, so that conditions may qualify columns with the
    name.
    """
    if is_connect(spark):
        return rows.alias(_last_part(name))
    jvm = Jvm.of(spark)
    return DataFrame(jvm.static("NamedRows", "named", spark._jsparkSession, rows._jdf, name), spark)


def _last_part(name: str) -> str:
    """Returns the last part of a name such as db.t or db.`odd name`."""
    last: str = re.findall(r"`(?:[^`]|``)+`|[^.`]+", name)[-1]
    return last[1:-1].replace("``", "`") if last.startswith("`") else last


def delete(spark: SparkSession, target: Changed, condition: Condition | None, columns_id: str) -> DataFrame:
    """Deletes rows of the table that `target` reads."""
    if isinstance(target, ServerTarget):
        return spark.createDataFrame([target.delete(condition)], _AFFECTED)
    if isinstance(target, Target):
        return _answer(spark, "DELETE", connect_verbs.delete(target, condition))
    return _executed(spark, _plans(spark, columns_id).delete(target._jdf, _given(condition)))


def update(
    spark: SparkSession,
    target: Changed,
    condition: Condition | None,
    values: Values,
    columns_id: str,
) -> DataFrame:
    """Changes rows of the table that `target` reads."""
    if isinstance(target, ServerTarget):
        return spark.createDataFrame([target.update(condition, values)], _AFFECTED)
    if isinstance(target, Target):
        return _answer(spark, "UPDATE", connect_verbs.update(target, condition, values))
    plans = _plans(spark, columns_id)
    return _executed(spark, plans.update(target._jdf, _values(plans, values), _given(condition)))


class DeltaMergeBuilder:
    """A MERGE that `DeltaTable.merge` has begun, and to which clauses are added.

    There are three kinds of clauses: for rows that match, for rows of the source without a match, and for rows of the
    table without a match. If a kind has several clauses, the first one with a true condition applies to a row.
    """

    def __init__(
        self,
        spark: SparkSession,
        target: Changed,
        source: DataFrame,
        condition: Condition,
        columns_id: str,
    ) -> None:
        if not isinstance(source, DataFrame):
            raise InvalidArgumentError(
                f"the source of a merge must be a DataFrame, not {type(source).__name__}"
            )
        self._spark, self._target, self._source, self._condition = spark, target, source, condition
        self._matched: list[MergeClause] = []
        self._not_matched: list[MergeClause] = []
        self._by_source: list[MergeClause] = []
        self._evolves = False
        self._columns_id = columns_id

    @raises_pyspark_errors
    def whenMatchedUpdate(  # noqa: N802 (the names users know)
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> "DeltaMergeBuilder":
        """Changes columns of rows that match a row of the source."""
        return self._with(self._matched, MergeClause("update", condition, values_argument(set, "set")))

    @raises_pyspark_errors
    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> "DeltaMergeBuilder":  # noqa: N802
        """Sets all columns of rows that match to the values of the source columns with the same names."""
        return self._with(self._matched, MergeClause("update", condition))

    @raises_pyspark_errors
    def whenMatchedDelete(self, condition: Condition | None = None) -> "DeltaMergeBuilder":  # noqa: N802
        """Deletes rows that match a row of the source."""
        return self._with(self._matched, MergeClause("delete", condition))

    @raises_pyspark_errors
    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Condition | None = None, values: Values | None = None
    ) -> "DeltaMergeBuilder":
        """Inserts rows of the source without a match, with these values. Columns without a value get their default
        value.
        """
        given = values_argument(values, "values")
        return self._with(self._not_matched, MergeClause("insert", condition, given))

    @raises_pyspark_errors
    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> "DeltaMergeBuilder":  # noqa: N802
        """Inserts rows of the source without a match. All columns get the values of the source columns with the same
        names.
        """
        return self._with(self._not_matched, MergeClause("insert", condition))

    @raises_pyspark_errors
    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002
    ) -> "DeltaMergeBuilder":
        """Changes columns of rows that no row of the source matches."""
        return self._with(self._by_source, MergeClause("update", condition, values_argument(set, "set")))

    @raises_pyspark_errors
    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> "DeltaMergeBuilder":  # noqa: N802
        """Deletes rows that no row of the source matches."""
        return self._with(self._by_source, MergeClause("delete", condition))

    def _with(self, clauses: list[MergeClause], clause: MergeClause) -> "DeltaMergeBuilder":
        """Adds a clause to the clauses of its kind."""
        if clauses and clauses[-1].condition is None:
            refused = InvalidArgumentError(
                f"the clause for {clauses[-1].action} has no condition, so no clause of its kind can follow it"
            )
            raise hinted(refused, "give it a condition, or make it the last one")
        clauses.append(clause)
        return self

    def withSchemaEvolution(self) -> "DeltaMergeBuilder":  # noqa: N802
        """Lets the merge add columns and fields of the source to the table, in the same commit. A column or field is
        added if a clause assigns it; `whenMatchedUpdateAll` and `whenNotMatchedInsertAll` assign all of them. Types are
        widened if the table allows it.
        """
        self._evolves = True
        return self

    @raises_pyspark_errors
    def execute(self) -> DataFrame:
        """Executes the merge. Returns one row: how many rows were affected, updated, deleted and inserted."""
        if not (self._matched or self._not_matched or self._by_source):
            raise InvalidArgumentError("a merge needs at least one clause, such as whenMatchedDelete()")
        kinds = (self._matched, self._not_matched, self._by_source)
        if isinstance(self._target, ServerTarget):
            merged = self._target.merge(self._source, self._condition, kinds, self._evolves)
            return self._spark.createDataFrame([merged], _MERGED)
        if isinstance(self._target, Target):
            metrics = connect_merge.merge(self._target, self._source, self._condition, *kinds, self._evolves)
            return _answer(self._spark, "MERGE", metrics)
        plans = _plans(self._spark, self._columns_id)
        adding = (plans.whenMatched, plans.whenNotMatched, plans.whenNotMatchedBySource)
        for add, clauses in zip(adding, kinds, strict=True):
            for action, condition, values in clauses:
                add(action, _given(condition), _values(plans, values))
        condition = _given(self._condition)
        run = plans.merge(self._target._jdf, self._source._jdf, condition, self._evolves)
        return _executed(self._spark, run)


def _plans(spark: SparkSession, columns_id: str) -> Any:
    return Jvm.of(spark).new("VerbPlans", spark._jsparkSession, columns_id)


def _given(value: Condition | None) -> Any:
    """Returns a condition or a value for `VerbPlans.java`."""
    return value if value is None or isinstance(value, str) else value._jc


def _values(plans: Any, values: Values | None) -> str | None:
    """Describes the assigned values for `VerbPlans.java`. Values that are `Column` objects are passed separately."""
    if values is None:
        return None
    described: list[tuple[str, str | None]] = []
    for name, value in values.items():
        if isinstance(value, str):
            described.append((name, value))
        else:
            plans.take(value._jc)
            described.append((name, None))
    return json.dumps(described)


def _executed(spark: SparkSession, run: Any) -> DataFrame:
    done = execute(Jvm.of(spark), spark._jsparkSession, run, run.description())
    return DataFrame(run.answer(" ".join(map(str, counts(*done)))), spark)


def _answer(spark: SparkSession, name: str, metrics: Metrics) -> DataFrame:
    return spark.createDataFrame([tuple(counts(name, metrics))], _MERGED if name == "MERGE" else _AFFECTED)
