"""The maintenance methods of `DeltaTable`: they move, delete or check files, and change the protocol."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from deltalog.arguments import text_argument
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.exceptions import raises_pyspark_errors
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
from deltalog.spark.sql.names import is_connect
from deltalog.spark.sql.vacuum import CHECK
from deltalog.spark.tables.handle import TableHandle
from deltalog.spark.write.record import USER_METADATA


class Maintenance(TableHandle):
    """The methods of `DeltaTable` that maintain the table."""

    @raises_pyspark_errors
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803
        """Upgrades the protocol to at least these versions, with all features that they imply.

        The protocol is never lowered. Reader version 3 and writer version 7 imply no features: tables with these
        versions list their features by name. So setting these versions alone changes nothing; use `addFeatureSupport`
        to add a feature.

        Raises:
            InvalidArgumentError: the protocol has no such version.
            UnsupportedFeatureError: deltalog cannot write tables with one of the features.
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
            UnsupportedFeatureError: deltalog cannot write tables with this feature.
        """
        self._change("addFeature", feature=_feature(featureName))

    @raises_pyspark_errors
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:  # noqa: N802, N803
        """Drops a table feature, as Python's `DeltaTable.alter.drop_feature` does.

        Args:
            featureName: the name of the feature.
            truncateHistory: delete the versions that use the feature, instead of protecting checkpoints. Such versions
                must be at least a day old. So the first call only prepares the drop, and raises an error that states
                when to call again.
        """
        if truncateHistory is not None and not isinstance(truncateHistory, bool):
            raise InvalidArgumentError(f"truncateHistory must be True or False, not {truncateHistory!r}")
        self._change("dropFeature", feature=_feature(featureName), truncate_history=bool(truncateHistory))

    @raises_pyspark_errors
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803
        """Deletes the files that the table no longer needs, as Python's `DeltaTable.vacuum` does.

        A retention that is shorter than the table's is refused unless
        `spark.databricks.delta.retentionDurationCheck.enabled` is false. The driver lists and deletes the files.
        `VACUUM ... DRY RUN` shows the files without deleting them. Returns an empty DataFrame.
        """
        enforces = str(self._spark.conf.get(CHECK, "true")).strip().lower() != "false"
        self._change("vacuum", retention_hours=retentionHours, enforces_retention=enforces)
        return self._spark.createDataFrame([], StructType([]))

    def optimize(self) -> "DeltaOptimizeBuilder":
        """Begins an OPTIMIZE, which `executeCompaction()` or `executeZOrderBy()` carries out."""
        return DeltaOptimizeBuilder(self)

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
        """Computes statistics for files whose statistics are missing or poor, as Python's `recompute_statistics` does.

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
        """Checks whether the files of the newest version exist and match the log, as Python's `DeltaTable.check` does.

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


class DeltaOptimizeBuilder:
    """An OPTIMIZE that was not executed yet, with the methods of the JVM connector."""

    def __init__(self, table: Maintenance) -> None:
        self._table = table
        self._predicate: str | None = None

    @raises_pyspark_errors
    def where(self, partitionFilter: str) -> "DeltaOptimizeBuilder":  # noqa: N803
        """Chooses partitions by an SQL condition on partition columns. If it is called several times, partitions must
        meet all conditions.
        """
        text_argument("partitionFilter", partitionFilter)
        before = self._predicate
        self._predicate = partitionFilter if before is None else f"({before}) AND ({partitionFilter})"
        return self

    def executeCompaction(self, *, full: bool = False) -> DataFrame:  # noqa: N802
        """Combines small files into fewer, larger ones. Returns the table's path and the metrics.

        In a table with clustering columns, clusters the rows of new files, or of all files if `full` is true. Executors
        read and write the files if their total size is 256 MiB or more; otherwise, the driver does. On a Spark Connect
        server that does not use deltalog's catalog, one Python process on the server does all the work.
        """
        return self._table._optimized(self._predicate, None, full=full)

    @raises_pyspark_errors
    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:  # noqa: N802
        """Orders the rows of each partition by columns, along a Hilbert curve. Returns the path and the metrics.

        All files of the partitions are rewritten, by the executors or the driver as in `executeCompaction`.
        """
        given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        names = [name for name in given if isinstance(name, str)]
        if not names or len(names) < len(given):
            raise InvalidArgumentError(f"executeZOrderBy takes one or more names of columns, not {cols!r}")
        return self._table._optimized(self._predicate, names)


def _feature(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"the name of a feature must be a string, not {name!r}")
    return name
