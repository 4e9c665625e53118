"""`DeltaTable` for Spark, with the names of `delta.tables.DeltaTable`. Import it from `deltalog.tables`."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from deltalog.arguments import limit_argument
from deltalog.errors import wrong_argument
from deltalog.spark.connect.carried import ServerTarget
from deltalog.spark.connect.server import has_our_catalog
from deltalog.spark.connect.target import Target
from deltalog.spark.dml.clauses import Condition, Values, values_argument
from deltalog.spark.errors import InvalidArgumentError, NotATableError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.options import store_options
from deltalog.spark.read.results import DETAIL, HISTORY, row
from deltalog.spark.sql.convert import directory_in, sql_of
from deltalog.spark.sql.names import is_connect, place_of_name
from deltalog.spark.tables import verbs
from deltalog.spark.tables.builder import DeltaTableBuilder
from deltalog.spark.tables.clones import Clones
from deltalog.spark.tables.maintenance import Maintenance
from deltalog.spark.tables.verbs import DeltaMergeBuilder


class DeltaTable(Maintenance, Clones):
    """A Delta table, created by `forPath` or `forName`.

    Each call uses the newest version, even if another writer has committed it. A DataFrame always reads the version
    that was the newest when the DataFrame was created.
    """

    @classmethod
    @raises_pyspark_errors
    def forPath(  # noqa: N802 (the names users know)
        cls,
        sparkSession: SparkSession,  # noqa: N803
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
    ) -> "DeltaTable":
        """Returns the table at `path`.

        `hadoopConf` determines how the store is accessed, like options of a read: settings of Hadoop (`fs.…`, `dfs.…`)
        or storage options. Under Spark Connect, it can have only storage options that are not secret. To read a shallow
        clone, set `allowedRoots` to the directory with the files of the source, or to a JSON list of directories.

        Raises:
            NotATableError: there is no table.
            InvalidArgumentError: `hadoopConf` contains any other option.
        """
        table = cls(sparkSession, path, store=store_options(hadoopConf or {}))
        table._ask("version")
        return table

    @classmethod
    @raises_pyspark_errors
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":  # noqa: N802, N803
        """Returns the table with this name in the session catalog, or deltalog.`/path`."""
        path, options = place_of_name(sparkSession, tableOrViewName)
        table = cls.forPath(sparkSession, path, options)
        table._name = tableOrViewName
        return table

    @classmethod
    @raises_pyspark_errors
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:  # noqa: N803
        """Returns a builder for a new table, which `execute()` creates as `CREATE TABLE` does."""
        return DeltaTableBuilder(_session(sparkSession), "create")

    @classmethod
    @raises_pyspark_errors
    def createIfNotExists(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Returns a builder for a table, which `execute()` creates unless a table with this name exists."""
        return DeltaTableBuilder(_session(sparkSession), "createIfNotExists")

    @classmethod
    @raises_pyspark_errors
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:  # noqa: N803
        """Returns a builder for a table that replaces an existing one when `execute()` is called."""
        return DeltaTableBuilder(_session(sparkSession), "replace")

    @classmethod
    @raises_pyspark_errors
    def createOrReplace(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Returns a builder for a table; `execute()` creates the table, or replaces an existing one."""
        return DeltaTableBuilder(_session(sparkSession), "createOrReplace")

    @classmethod
    @raises_pyspark_errors
    def convertToDelta(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        identifier: str,
        partitionSchema: str | StructType | None = None,  # noqa: N803
    ) -> "DeltaTable":
        """Converts a directory of Parquet files to a table, as `deltalog.convert_to_delta` does, and returns it.

        A directory that is already a table is not changed. The driver lists the directory and reads the footers. If the
        directory belongs to a table of Parquet files in the session catalog, the catalog determines the columns and
        partitions.

        Args:
            sparkSession: the session.
            identifier: parquet.`/path`, or the name of a table. Under Spark Connect, a name requires a server that uses
                deltalog's catalog.
            partitionSchema: the partition columns with their types; without it, they are taken from the names of the
                directories, and their types are inferred.
        """
        path = directory_in(identifier)
        columns = sql_of(partitionSchema)
        if is_connect(sparkSession) and not has_our_catalog(sparkSession):
            if path is None:
                raise InvalidArgumentError(
                    f"under Spark Connect, a directory to convert is written as parquet.`/path`, not {identifier!r}"
                )
            schema = None if columns is None else sparkSession.createDataFrame([], columns).schema.json()
            zone = str(sparkSession.conf.get("spark.sql.session.timeZone"))
            made = cls(sparkSession, path)
            made._change("convert", partition_by=schema, time_zone=zone)
            return made
        call = "CALL deltalog.convert(table => :table, partition_by => :columns)"
        sparkSession.sql(call, args={"table": identifier, "columns": columns}).collect()
        return cls.forName(sparkSession, identifier) if path is None else cls.forPath(sparkSession, path)

    @classmethod
    @raises_pyspark_errors
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: N802, N803
        """Returns whether there is a Delta table at the path.

        Raises an error if the location cannot be read.
        """
        try:
            cls(sparkSession, identifier)._ask("version")
        except NotATableError:
            return False
        return True

    @raises_pyspark_errors
    def toDF(self) -> DataFrame:  # noqa: N802
        """Returns a DataFrame of the newest version, which always reads that version.

        Conditions and values of this table's statements may refer to its columns: `table.delete(frame.id == 1)`.
        """
        reader = self._reader()
        if is_connect(self._spark):
            # Spark Connect plans a DataFrame again for each action, so the version must be part of the plan.
            newest = reader.option("versionAsOf", self._ask("version")).load(self._path)
        else:
            newest = verbs.with_own_columns(self._spark, reader.load(self._path), self._own.id)
        shown = self._called(newest)
        self._own.note(shown)
        return shown

    @raises_pyspark_errors
    def alias(self, aliasName: str) -> "DeltaTable":  # noqa: N803
        """Returns the same table with a name that conditions can use to refer to its columns."""
        return DeltaTable(self._spark, self._path, aliasName, self._store, self._own, self._name)

    @raises_pyspark_errors
    def delete(self, condition: Condition | None = None) -> DataFrame:
        """Deletes the rows for which `condition`, SQL text or a column, is true; without a condition, all rows.

        With the table property `delta.enableDeletionVectors`, the other rows of the affected files are not rewritten.
        Otherwise these files are rewritten. Returns one row with `num_affected_rows`. Nothing is committed if no row is
        deleted.

        Raises:
            CommitConflictError: another writer has changed one of these rows, or the table itself.
        """
        return verbs.delete(self._spark, self._target(), condition, self._own.id)

    @raises_pyspark_errors
    def update(self, condition: Condition | None = None, set: Values | None = None) -> DataFrame:  # noqa: A002
        """Assigns new values to columns of the rows for which `condition` is true; without a condition, of all rows.

        `set` maps the names of columns to their new values, as SQL text (`{"price": "price * 1.1"}`) or as columns.
        Returns one row with `num_affected_rows`. It raises the same errors as `delete`.
        """
        return verbs.update(self._spark, self._target(), condition, values_argument(set, "set"), self._own.id)

    @raises_pyspark_errors
    def merge(self, source: DataFrame, condition: Condition) -> DeltaMergeBuilder:
        """Begins a merge with `source`; `condition` determines which rows match. `execute()` carries out the merge.

        Give both sides names: `table.alias("t").merge(frame.alias("s"), "t.id = s.id")`.
        """
        return DeltaMergeBuilder(self._spark, self._target(), source, condition, self._own.id)

    def _target(self) -> verbs.Changed:
        if is_connect(self._spark) and not has_our_catalog(self._spark):
            return Target(self._spark, self._path, self._alias, self._ask, self._store, self._own)
        newest = self._called(self._reader().load(self._path))
        return ServerTarget(newest) if is_connect(self._spark) else newest

    def _called(self, rows: DataFrame) -> DataFrame:
        """Returns a DataFrame of the table under its alias, or else under the name that `forName` was given, as in
        SQL.
        """
        if self._alias is not None:
            return rows.alias(self._alias)
        return rows if self._name is None else verbs.named(self._spark, rows, self._name)

    @raises_pyspark_errors
    def history(self, limit: int | None = None) -> DataFrame:
        """Returns the commits, newest first."""
        if limit is not None and (limit_argument(limit) or 0) < 1:
            raise wrong_argument("limit", limit, "a whole number from 1")
        commits = self._ask("history", limit=limit)
        return self._spark.createDataFrame([row(HISTORY, commit) for commit in commits], HISTORY)

    @raises_pyspark_errors
    def detail(self) -> DataFrame:
        """Returns one row that describes the newest version."""
        return self._spark.createDataFrame([row(DETAIL, self._ask("detail"))], DETAIL)

    @raises_pyspark_errors
    def count(self, condition: str | None = None) -> int:
        """Returns the number of rows of the newest version; with the SQL `condition`, only rows for which it is true
        are counted.

        The number comes from the log if possible, as in Python's `DeltaTable.count`.
        """
        return int(self._ask("count", condition=condition, time_zone=self._time_zone()))

    @raises_pyspark_errors
    def count_by_partition(self, condition: str | None = None) -> DataFrame:
        """Returns the number of rows of each partition of the newest version.

        The columns are the partition columns and `count`, as in Python's `DeltaTable.count_by_partition`.
        """
        counts = self._ask("countByPartition", condition=condition, time_zone=self._time_zone())
        table = StructType.fromJson(json.loads(counts.schema.metadata[b"deltalog.schema"]))
        *partition_columns, count = counts.column_names
        schema = StructType([*(table[name] for name in partition_columns), StructField(count, LongType())])
        return self._spark.createDataFrame(counts.replace_schema_metadata(None), schema)

    @raises_pyspark_errors
    def min_max(self, column: str, condition: str | None = None) -> tuple[Any, Any] | None:
        """Returns the minimum and maximum of a column of the newest version.

        Returns None if the log does not contain them, as Python's `DeltaTable.min_max` does.
        """
        answer = self._ask("minMax", column=column, condition=condition, time_zone=self._time_zone())
        return None if answer is None else (answer[0], answer[1])


def _session(spark: SparkSession | None) -> SparkSession:
    found = SparkSession.getActiveSession() if spark is None else spark
    if found is None:
        raise InvalidArgumentError("there is no active session: pass the SparkSession")
    return found
