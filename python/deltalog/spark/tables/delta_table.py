"""`DeltaTable` for Spark, with the names of `delta.tables.DeltaTable`. Import it from `deltalog.tables`."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from deltalog._internal import Snapshot
from deltalog.arguments import limit_argument, text_argument
from deltalog.errors import wrong_argument
from deltalog.spark.connect import exchange
from deltalog.spark.connect.carried import ServerTarget
from deltalog.spark.connect.copies import CloneCommand
from deltalog.spark.connect.server import has_our_catalog
from deltalog.spark.connect.target import Target
from deltalog.spark.dml.clauses import Condition, Values, values_argument
from deltalog.spark.dml.own_frames import OwnFrames
from deltalog.spark.errors import InvalidArgumentError, NotATableError, UnsupportedFeatureError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options, store_options
from deltalog.spark.read.results import DETAIL, HISTORY, row
from deltalog.spark.sql import commands
from deltalog.spark.sql.clone import CloneRequest, clone_properties, cloned, path_in
from deltalog.spark.sql.convert import directory_in, sql_of
from deltalog.spark.sql.entries import UPDATE_ENTRY
from deltalog.spark.sql.executors import Executors
from deltalog.spark.sql.maintenance import (
    CHECKED,
    OPTIMIZED,
    RECOMPUTED,
    REPAIRED,
    RESTORED,
    checked_row,
    optimized,
    row_of,
)
from deltalog.spark.sql.names import is_connect, location_in, place_of_name
from deltalog.spark.sql.vacuum import CHECK
from deltalog.spark.tables import verbs
from deltalog.spark.tables.builder import DeltaTableBuilder, IdentityGenerator
from deltalog.spark.tables.verbs import DeltaMergeBuilder
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.record import USER_METADATA

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]


class DeltaTable:
    """A Delta table, created by `forPath` or `forName`.

    Each call uses the newest version: changes act on it, even if another writer committed it. A
    DataFrame keeps the version that was the newest when it was created.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        alias: str | None = None,
        store: Mapping[str, str] | None = None,
        own: OwnFrames | None = None,
        name: str | None = None,
    ) -> None:
        self._spark = spark
        self._path = path
        self._alias = alias
        self._store = dict(store or {})
        self._own = own or OwnFrames()
        self._name = name

    @classmethod
    @raises_pyspark_errors
    def forPath(  # noqa: N802 (the names users know)
        cls,
        sparkSession: SparkSession,  # noqa: N803
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
    ) -> "DeltaTable":
        """Returns the table at `path`.

        `hadoopConf` says how its store is accessed, like options of a read: settings of Hadoop (`fs.…`, `dfs.…`) or
        storage options. Under Spark Connect, it can have only storage options that are not secret. For a shallow clone
        it has `allowedRoots`, the directory with the files of the source, or a JSON list of directories.

        Raises:
            NotATableError: there is no table.
            InvalidArgumentError: `hadoopConf` has another name.
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
        """Begins the definition of a new table, which `execute()` creates as `CREATE TABLE` does."""
        return DeltaTableBuilder(_session(sparkSession), "create")

    @classmethod
    @raises_pyspark_errors
    def createIfNotExists(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Begins the definition of a table, which `execute()` creates if there is none with this name."""
        return DeltaTableBuilder(_session(sparkSession), "createIfNotExists")

    @classmethod
    @raises_pyspark_errors
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:  # noqa: N803
        """Begins the definition of a table; `execute()` replaces an existing table by it."""
        return DeltaTableBuilder(_session(sparkSession), "replace")

    @classmethod
    @raises_pyspark_errors
    def createOrReplace(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Begins the definition of a table; `execute()` creates the table, or replaces an existing one."""
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

        A directory that is already a table is not changed. The driver lists the directory and reads the footers. A
        table of Parquet files in the session catalog has the columns and partitions that the catalog says.

        Args:
            sparkSession: the session.
            identifier: parquet.`/path`; in classic sessions also the name of a table.
            partitionSchema: the partition columns with their types; without it, they are taken from the names of the
                directories, and their types are inferred.
        """
        path = directory_in(identifier)
        columns = sql_of(partitionSchema)
        if is_connect(sparkSession) and not has_our_catalog(sparkSession):
            if path is None:
                raise InvalidArgumentError(
                    f"under Spark Connect, what can be converted is named parquet.`/path`, not {identifier!r}"
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
        """Returns the newest version as a DataFrame, which keeps that version.

        Conditions and values of this table's statements may refer to its columns: `table.delete(frame.id == 1)`.
        """
        reader = self._reader()
        if is_connect(self._spark):  # Connect plans a DataFrame again for each action.
            newest = reader.option("versionAsOf", self._ask("version")).load(self._path)
        else:
            newest = verbs.with_own_columns(self._spark, reader.load(self._path), self._own.id)
        shown = newest if self._alias is None else newest.alias(self._alias)
        self._own.note(shown)
        return shown

    @raises_pyspark_errors
    def alias(self, aliasName: str) -> "DeltaTable":  # noqa: N803
        """Returns the same table under another name, by which conditions refer to its columns."""
        return DeltaTable(self._spark, self._path, aliasName, self._store, self._own, self._name)

    def _reader(self) -> DataFrameReader:
        return self._spark.read.format("deltalog").options(**self._store)

    @raises_pyspark_errors
    def delete(self, condition: Condition | None = None) -> DataFrame:
        """Deletes the rows for which `condition`, SQL text or a column, is true; without one, all rows.

        With the table property `delta.enableDeletionVectors` the other rows of their files stay where they are.
        Otherwise these files are rewritten. Returns one row with `num_affected_rows`. Nothing is committed if there is
        no such row.

        Raises:
            CommitConflictError: another writer has changed one of these rows, or the table itself.
        """
        return verbs.delete(self._spark, self._target(), condition, self._own.id)

    @raises_pyspark_errors
    def update(self, condition: Condition | None = None, set: Values | None = None) -> DataFrame:  # noqa: A002
        """Changes the rows for which `condition` is true; without one, all rows.

        `set` has the new values by the names of columns, as SQL text (`{"price": "price * 1.1"}`) or as columns.
        Returns one row with `num_affected_rows`. It raises the same errors as `delete`.
        """
        return verbs.update(self._spark, self._target(), condition, values_argument(set, "set"), self._own.id)

    @raises_pyspark_errors
    def merge(self, source: DataFrame, condition: Condition) -> DeltaMergeBuilder:
        """Begins a merge with the rows of `source`, matched by `condition`, which `execute()` carries out.

        Give both sides names: `table.alias("t").merge(frame.alias("s"), "t.id = s.id")`.
        """
        return DeltaMergeBuilder(self._spark, self._target(), source, condition, self._own.id)

    def _target(self) -> verbs.Changed:
        if is_connect(self._spark) and not has_our_catalog(self._spark):
            return Target(self._spark, self._path, self._alias, self._ask, self._store, self._own)
        newest = self._reader().load(self._path)
        if self._alias is not None:
            newest = newest.alias(self._alias)
        return ServerTarget(newest) if is_connect(self._spark) else newest

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
        """Returns the number of rows of the newest version, or of those for which the SQL `condition` is true.

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

    @raises_pyspark_errors
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803
        """Upgrades the protocol to at least these versions, with all features that they imply.

        Nothing is lowered. The versions 3 and 7 have lists of features: they alone change nothing, and
        `addFeatureSupport` adds a feature.

        Raises:
            InvalidArgumentError: the protocol has no such version.
            UnsupportedFeatureError: a feature cannot be written.
        """
        for name, version in (("readerVersion", readerVersion), ("writerVersion", writerVersion)):
            if not isinstance(version, int) or isinstance(version, bool):
                raise InvalidArgumentError(f"{name} must be a whole number, not {version!r}")
        self._change("upgradeProtocol", reader=readerVersion, writer=writerVersion)

    @raises_pyspark_errors
    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803
        """Adds a table feature to the protocol, such as `deletionVectors`.

        Raises:
            InvalidArgumentError: there is no such feature.
            UnsupportedFeatureError: the feature cannot be written.
        """
        self._change("addFeature", feature=_feature(featureName))

    @raises_pyspark_errors
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:  # noqa: N802, N803
        """Drops a table feature, as Python's `DeltaTable.alter.drop_feature` does.

        Args:
            featureName: the name of the feature.
            truncateHistory: delete the versions that use the feature, instead of protecting checkpoints. Such versions
                must be a day old, so that a first call only prepares the drop, and its error says when to call again.
        """
        if truncateHistory is not None and not isinstance(truncateHistory, bool):
            raise InvalidArgumentError(f"truncateHistory must be True or False, not {truncateHistory!r}")
        self._change("dropFeature", feature=_feature(featureName), truncate_history=bool(truncateHistory))

    @raises_pyspark_errors
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803
        """Deletes the files that the table no longer needs, as Python's `DeltaTable.vacuum` does.

        A retention that is shorter than the table's is refused unless
        `spark.databricks.delta.retentionDurationCheck.enabled` is false. The driver lists and deletes the files;
        `VACUUM ... DRY RUN` shows them. Returns an empty DataFrame.
        """
        enforces = str(self._spark.conf.get(CHECK, "true")).strip().lower() != "false"
        self._change("vacuum", retention_hours=retentionHours, enforces_retention=enforces)
        return self._spark.createDataFrame([], StructType([]))

    def optimize(self) -> "DeltaOptimizeBuilder":
        """Begins an OPTIMIZE, which `executeCompaction()` or `executeZOrderBy()` carries out."""
        return DeltaOptimizeBuilder(self)

    @raises_pyspark_errors
    def clone(
        self,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """Clones the newest version to another location, as Python's `DeltaTable.clone` does, and returns the new
        table.

        Args:
            target: the path of the clone, deltalog.`/path`, or a name in the session catalog; under Spark Connect a
                path.
            isShallow: whether the clone refers to the files of this table, instead of having copies of them.
            replace: whether an existing table at the clone's location is replaced.
            properties: properties that the clone has instead of this table's.
        """
        return self._cloned(target, isShallow, replace, properties)

    @raises_pyspark_errors
    def cloneAtVersion(  # noqa: N802
        self,
        version: int,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """Clones a version to another location, as `clone` does."""
        if not isinstance(version, int) or isinstance(version, bool):
            raise InvalidArgumentError(f"the version must be a whole number, not {version!r}")
        return self._cloned(target, isShallow, replace, properties, version=version)

    @raises_pyspark_errors
    def cloneAtTimestamp(  # noqa: N802
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """Clones the version that was the newest at a time, as `clone` does."""
        if timestamp is None:
            raise InvalidArgumentError("the time must be text such as '2025-01-31 12:00:00'")
        return self._cloned(target, isShallow, replace, properties, timestamp=timestamp)

    def _cloned(
        self,
        target: str,
        is_shallow: bool,
        replaces: bool,
        properties: Mapping[str, str] | None,
        version: int | None = None,
        timestamp: str | None = None,
    ) -> "DeltaTable":
        if is_connect(self._spark):
            return self._cloned_by_server(target, is_shallow, replaces, properties, version, timestamp)
        path = path_in(target)
        if path is None:
            self._check_nameable(target)
        source = self._newest()
        if version is not None or timestamp is not None:
            source = source.at(version, None if timestamp is None else self._millis(timestamp))
        mode = "create or replace" if replaces else "create"
        text = None if properties is None else json.dumps(dict(properties))
        request = CloneRequest(target, bool(is_shallow), mode, None, text, self._reached_by())
        jvm, session = Jvm.of(self._spark), self._spark._jsparkSession
        cloned(jvm, session, source, request, self._spark.conf.get(USER_METADATA, None))
        return self._clone_at(place_of_name(self._spark, target)[0] if path is None else path, is_shallow)

    def _cloned_by_server(
        self,
        target: str,
        is_shallow: bool,
        replaces: bool,
        properties: Mapping[str, str] | None,
        version: int | None,
        timestamp: str | None,
    ) -> "DeltaTable":
        path = path_in(target)
        if path is None and not has_our_catalog(self._spark):
            raise UnsupportedFeatureError(
                f"under Spark Connect a clone has a path, and no name such as {target}: the catalog of the server "
                "is not deltalog's"
            )
        if path is None:
            self._check_nameable(target)
        command = CloneCommand(
            target=target if path is None else path,
            shallow=bool(is_shallow),
            mode="overwrite" if replaces else "error",
            version=version,
            timestamp_ms=None if timestamp is None else self._millis(timestamp),
            properties=clone_properties(None if properties is None else json.dumps(dict(properties))),
            request=str(uuid.uuid4()),
            user_metadata=self._spark.conf.get(USER_METADATA, None),
        )
        self._ask("clone", **command._asdict())
        return self._clone_at(place_of_name(self._spark, target)[0] if path is None else path, is_shallow)

    def _check_nameable(self, target: str) -> None:
        """Raises an error if an entry in the catalog could not say how the store of a clone is accessed."""
        if self._reached_by():
            raise UnsupportedFeatureError(
                f"the clone {target} of a table whose store is reached by options of its own cannot have a name, "
                "because its entry in the catalog would not have them: set them in the session, or name a path"
            )

    def _reached_by(self) -> dict[str, str]:
        """Returns the options that say how the store is reached."""
        return {name: value for name, value in self._store.items() if name.lower() != "allowedroots"}

    def _clone_at(self, path: str, is_shallow: bool) -> "DeltaTable":
        """Returns a clone of this table, which is accessed with this table's options."""
        is_local = path.startswith(("/", "file:"))
        store = {} if is_local else self._reached_by()
        if is_shallow:
            store["allowedRoots"] = json.dumps([self._path, *Options(self._store).allowed_roots])
        return DeltaTable(self._spark, path, store=store)

    @raises_pyspark_errors
    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802
        """Restores an earlier version as the newest one, as Python's `DeltaTable.restore` does. Returns the metrics."""
        if not isinstance(version, int) or isinstance(version, bool):
            raise InvalidArgumentError(f"the version must be a whole number, not {version!r}")
        return self._restored(version, None, None)

    @raises_pyspark_errors
    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802
        """Restores the version that was the newest at a time. Returns the metrics.

        A time without a zone is in the session's zone.
        """
        return self._restored(None, self._millis(timestamp), timestamp)

    def _millis(self, timestamp: str) -> int:
        """Returns a time as milliseconds since the epoch."""
        query = "SELECT unix_millis(CAST(:time AS TIMESTAMP)) AS time"
        [found] = self._spark.sql(query, args={"time": timestamp}).collect()
        if found.time is None:
            raise InvalidArgumentError(f"{timestamp!r} is not a time")
        time: int = found.time
        return time

    def _restored(self, version: int | None, timestamp_ms: int | None, timestamp: str | None) -> DataFrame:
        user_metadata = self._spark.conf.get(USER_METADATA, None)
        answer = self._ask(
            "restore",
            version=version,
            timestamp_ms=timestamp_ms,
            timestamp=timestamp,
            user_metadata=user_metadata,
        )
        self._refresh(answer["version"])
        self._update_entry()
        return self._spark.createDataFrame([tuple(row) for row in answer["rows"]], RESTORED)

    @raises_pyspark_errors
    def generate(self, mode: str) -> None:
        """Writes manifests of the table's files, as Python's `DeltaTable.generate` does.

        The only mode is `symlink_format_manifest`.
        """
        self._ask("generate", mode=mode)

    @raises_pyspark_errors
    def recomputeStatistics(  # noqa: N802
        self,
        predicate: str | None = None,
        *,
        allFiles: bool = False,  # noqa: N803
    ) -> DataFrame:
        """Computes statistics for files that have no statistics or poor ones, as Python's `recompute_statistics` does.

        `predicate` is SQL on partition columns. Returns the metrics. The driver reads the files, not the executors.
        """
        values = self._ask(
            "recomputeStatistics",
            predicate=predicate,
            all_files=allFiles,
            user_metadata=self._spark.conf.get(USER_METADATA, None),
        )
        return self._spark.createDataFrame([tuple(values)], RECOMPUTED)

    @raises_pyspark_errors
    def check(self, level: str = "footers") -> DataFrame:
        """Checks whether the files of the newest version are what its log says, as Python's `DeltaTable.check` does.

        Returns one row per problem. The driver reads the files, not the executors.
        """
        rows = [checked_row(found) for found in self._ask("check", level=level)]
        return self._spark.createDataFrame(rows, CHECKED)

    @raises_pyspark_errors
    def repair(
        self,
        dryRun: bool = False,  # noqa: N803
        *,
        removeDamaged: bool = False,  # noqa: N803
        dropFilesWithoutVectors: bool = False,  # noqa: N803
    ) -> DataFrame:
        """Removes missing files from the table, as Python's `DeltaTable.repair` does.

        Returns one row per file.
        """
        answer = self._ask(
            "repair",
            dry_run=dryRun,
            remove_damaged=removeDamaged,
            drop_files_without_vectors=dropFilesWithoutVectors,
            user_metadata=self._spark.conf.get(USER_METADATA, None),
        )
        self._refresh(answer["version"])
        return self._spark.createDataFrame([tuple(file) for file in answer["rows"]], REPAIRED)

    @raises_pyspark_errors
    def _optimized(
        self, predicate: str | None, z_order: list[str] | None, *, full: bool = False
    ) -> DataFrame:
        user_metadata = self._spark.conf.get(USER_METADATA, None)
        if is_connect(self._spark):
            arguments = {"predicate": predicate, "z_order": z_order, "full": full}
            values = self._ask("optimize", **arguments, user_metadata=user_metadata)
        else:
            executors = Executors.of(self._spark)
            values = optimized(
                self._newest(), predicate, user_metadata, z_order=z_order, full=full, executors=executors
            )
        return self._spark.createDataFrame([row_of(OPTIMIZED, values)], OPTIMIZED)

    def _refresh(self, version: int | None) -> None:
        """Makes Spark compute cached rows of the table again, which are out of date since the version was committed."""
        if not is_connect(self._spark):
            location, _ = location_in(self._spark, self._path, self._store)
            refresh(Jvm.of(self._spark), self._spark._jsparkSession, location.uri, version)

    def _update_entry(self) -> None:
        """Updates the columns in the table's catalog entry."""
        if self._name is None:
            return
        if not is_connect(self._spark):
            jvm = Jvm.of(self._spark)
            jvm.static("EntryColumns", "update", self._spark._jsparkSession, self._name)
        elif has_our_catalog(self._spark):
            self._ask(UPDATE_ENTRY, name=self._name)

    def _change(self, command: str, **arguments: Any) -> None:
        """Executes a command that changes the table."""
        self._ask(command, **arguments, user_metadata=self._spark.conf.get(USER_METADATA, None))

    def _ask(self, command: str, **arguments: Any) -> Any:
        """Returns the result of a command on the newest version.

        A Connect client may have no access to the table's files, so there the server executes the command.
        """
        if not is_connect(self._spark):
            return commands.answer(self._newest(), command, arguments)
        options = {exchange.COMMAND: command, exchange.ARGUMENTS: json.dumps(arguments)}
        [row] = self._reader().options(**options).load(self._path).collect()
        return exchange.value_of(row[exchange.ANSWER])

    def _newest(self) -> Snapshot:
        """Opens the newest version in a classic session."""
        location, roots = location_in(self._spark, self._path, self._store)
        return Snapshot.open(location.uri, storage_options=location.storage_options, allowed_roots=roots)

    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))


class DeltaOptimizeBuilder:
    """An OPTIMIZE, with the methods of the JVM connector."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._predicate: str | None = None

    @raises_pyspark_errors
    def where(self, partitionFilter: str) -> "DeltaOptimizeBuilder":  # noqa: N803
        """Chooses partitions by SQL on partition columns. If it is called several times, all conditions must hold."""
        text_argument("partitionFilter", partitionFilter)
        before = self._predicate
        self._predicate = partitionFilter if before is None else f"({before}) AND ({partitionFilter})"
        return self

    def executeCompaction(self, *, full: bool = False) -> DataFrame:  # noqa: N802
        """Merges small files into fewer, larger ones. Returns the table's path and the metrics.

        In a table with clustering columns, clusters the rows of new files, or of all with `full`. Executors read and
        write the files if these have 256 MiB or more; under Spark Connect, a process of the server does.
        """
        return self._table._optimized(self._predicate, None, full=full)

    @raises_pyspark_errors
    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:  # noqa: N802
        """Orders the rows of each partition by columns, along Hilbert's curve. Returns the path and the metrics.

        All files of the partitions are written again, as `executeCompaction` writes files.
        """
        given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        names = [name for name in given if isinstance(name, str)]
        if not names or len(names) < len(given):
            raise InvalidArgumentError(f"executeZOrderBy takes one or more names of columns, not {cols!r}")
        return self._table._optimized(self._predicate, names)


def _session(spark: SparkSession | None) -> SparkSession:
    found = SparkSession.getActiveSession() if spark is None else spark
    if found is None:
        raise InvalidArgumentError("there is no active session: pass the SparkSession")
    return found


def _feature(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"the name of a feature must be text, not {name!r}")
    return name
