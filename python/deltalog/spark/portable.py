"""The format `deltalog` as a Python Data Source, for Spark Connect and for builds of Spark without the native path.

    driver                         workers                      driver
    Snapshot.scan_partitions  →    read_fragment (Arrow)
    SparkWrite.begin, task    →    WriteTask.write (Arrow) →    SparkWrite.resume, commit_fragments

Rust and Arrow process the data in Spark's Python workers, where `deltalog` must also be installed. The processes
exchange tasks, tokens and fragments, without credentials (`connect/place.py`). All columns are read, because Spark does
not tell the source which columns are needed.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StringType, StructField, StructType

from deltalog import upkeep
from deltalog._internal import (
    AlreadyApplied,
    Fragment,
    Snapshot,
    SparkChanges,
    SparkWrite,
    WriteTask,
    __version__,
    read_fragment,
)
from deltalog.arguments import ChangeRange, TableOptions
from deltalog.spark import schema as schemas
from deltalog.spark.connect.bounds import version_or_time
from deltalog.spark.connect.exchange import ANSWER, ARGUMENTS, COMMAND, answer_text, portable_answer
from deltalog.spark.connect.place import Place, check_plain, connect_uri, place_of
from deltalog.spark.connect.statement import POSITION_FIELDS
from deltalog.spark.connect.stream_reader import content_of, stream_reader
from deltalog.spark.connect.stream_writer import StreamWriter
from deltalog.spark.connect.task_files import written
from deltalog.spark.connect.writer import statement_writer
from deltalog.spark.errors import DeltaError, InvalidArgumentError
from deltalog.spark.options import Options
from deltalog.spark.read.filters import filter_text
from deltalog.spark.schema import ROW_ID_FIELDS, arrow_schema, feed_schema, of_query, with_fields
from deltalog.spark.write.base import check_base_requested, requested_base
from deltalog.spark.write.evolution import schema_mode
from deltalog.spark.write.overwrite import check_overwrite, replaced_rows
from deltalog.spark.write.record import Record, log_applied

# Spark refuses a reader with filter pushdown unless this is set, so there are two kinds of readers.
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_PARTITIONS = "numpartitions"
_DEFAULT_PARTITIONS = 16
_BOUNDS = ("starting", "ending")


def enable(spark: SparkSession, alias_delta: bool | None = None) -> None:
    """Registers the source, also under the name `delta` unless `alias_delta` is false. Later calls have no effect.

    If another source already has the name `delta`, it keeps the name; if `alias_delta` is true, this is an error.
    Filters skip files if the session allows filter pushdown (Spark 4.1 and newer).
    """
    has_name = alias_delta is not False and _may_have_alias(spark, insists=alias_delta is True)
    pushes = str(spark.conf.get(_PUSHDOWN, "false")).lower() == "true"
    spark.dataSource.register(PruningDataSource if pushes else DeltalogDataSource)
    if has_name:
        spark.dataSource.register(PruningAlias if pushes else Alias)


def _may_have_alias(spark: SparkSession, insists: bool) -> bool:
    """Returns whether the name `delta` is free or already deltalog's. If another source has the name, and the caller
    `insists` on it, raises an error instead of returning false.
    """
    try:
        has_alias(spark)
    except InvalidArgumentError:
        if insists:
            raise
        return False
    return True


def has_alias(spark: SparkSession) -> bool:
    """Returns whether the name `delta` is deltalog's in a session. Raises an error if another source has it.

    A client cannot list the sources of a server, so it plans a read with an option that only this source knows.
    """
    from deltalog.spark.jvm.alias import NAME, WISH

    refusal = (
        f"{WISH} is not possible: the format delta of this session belongs to another source; omit {WISH}"
    )

    try:
        columns = spark.read.format(NAME).option(COMMAND, "version").load("/").columns
    except Exception as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):  # The class of this error differs.
            return False
        if not isinstance(error, AnalysisException):
            raise
        raise InvalidArgumentError(refusal) from error
    if columns != [ANSWER]:
        raise InvalidArgumentError(refusal)
    return True


class DeltalogDataSource(DataSource):
    """The source of one plan. It is created on the driver and pickled between steps."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = Options(dict(options))
        check_plain(self._options)  # Checked here, because pickled data must not contain secrets.
        self._version: int | None = None
        self._versions: tuple[int, int] | None = None

    @classmethod
    def name(cls) -> str:
        return "deltalog"

    def schema(self) -> StructType:
        if self._options.command is not None:
            return StructType([StructField(ANSWER, StringType())])
        if self._options.wants_changes:
            return StructType.fromJson(json.loads(feed_schema(self._feed())))
        snapshot = self._snapshot(may_stream=True)
        self._version = snapshot.version  # The scan must be planned on the version of this schema.
        return self._schema_of(snapshot)

    def _feed(self) -> Snapshot:
        """Returns the snapshot that determines the columns of the change data feed.

        Spark does not say whether a batch query or a stream will read the columns.
        """
        try:
            changes = self._changes()
        except DeltaError:
            self._options.check_read(under_connect=True, may_stream=True)
            if self._options.ends:
                raise
            content_of(self._options)  # Refuses options that not even a stream can have.
            snapshot = self._newest()
        else:
            self._versions, snapshot = changes.versions, changes.snapshot
        self._version = snapshot.version
        return snapshot

    def _schema_of(self, snapshot: Snapshot) -> StructType:
        text = of_query(snapshot)
        if self._options.wants_row_ids:
            text = with_fields(text, ROW_ID_FIELDS)
        if self._options.wants_positions:
            text = with_fields(text, POSITION_FIELDS)
        return StructType.fromJson(json.loads(text))

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._options.command is not None:
            arguments = self._options.values.get(ARGUMENTS, "{}")
            execute = partial(portable_answer, self._options, self._newest)
            return CommandReader(answer_text(execute, self._options.command, arguments))
        place = place_of(self._options)
        changes = self._changes() if self._options.wants_changes else None
        snapshot = self._snapshot() if changes is None else changes.snapshot
        expected = (
            self._schema_of(snapshot)
            if changes is None
            else StructType.fromJson(json.loads(feed_schema(snapshot)))
        )
        if schema.names != expected.names:
            raise InvalidArgumentError(
                f"the Delta table {snapshot.uri} has the columns {', '.join(expected.names)}: omit the schema"
            )
        partitions = int(self._options.values.get(_PARTITIONS, _DEFAULT_PARTITIONS))
        if changes is not None:
            return ChangesReader(place, snapshot, changes.versions, schema, partitions)
        return self._reader_type()(place, snapshot, schema, partitions, self._options)

    def _reader_type(self) -> type["DeltalogReader"]:
        return DeltalogReader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if self._options.statement is not None:
            return statement_writer(place_of(self._options), self._roots(), self._options.statement)
        mode = "overwrite" if overwrite else "append"
        self._options.check_write()
        self._options.check_mode(mode)
        partition_by = self._options.partition_by()
        table = TableOptions(partition_by, self._options.table_configuration())
        place = place_of(self._options)
        uri = place.uri
        base = None
        if overwrite:
            base = requested_base(self._options, uri, self._roots(), place.storage_options)
        replaced = replaced_rows(self._options, settings=None)
        record = Record.of_options(self._options)
        begun = SparkWrite.begin(
            uri,
            schemas.of_data(schema.json()),
            mode,
            table,
            storage_options=place.storage_options,
            base=base,
            partition_overwrite=replaced.mode or "static",
            app_transaction=record.app_transaction,
            replace_where=replaced.where,
            schema_mode=schema_mode(self._options, settings=None),
        )
        if isinstance(begun, AlreadyApplied):
            log_applied(begun, uri)
            return NothingToWrite()
        pending = begun
        if pending is None:
            raise InvalidArgumentError(f"a write with the mode {mode} was not started")
        pending.ensure_evaluable()
        if overwrite:
            check_base_requested(pending, uri, self._options)
            check_overwrite(pending, uri, replaced)
        parameters = {"mode": mode.capitalize(), "partitionBy": json.dumps(partition_by or [])}
        if self._options.replace_where is not None:
            parameters["predicate"] = self._options.replace_where
        return DeltalogWriter(place, pending.token(), pending.task(), parameters, record.user_metadata)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        return stream_reader(self._options, self._roots(), self._version, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return StreamWriter(self._options, schema, overwrite)

    def _roots(self) -> list[str]:
        return [connect_uri(root) for root in self._options.allowed_roots]

    def _newest(self) -> Snapshot:
        place = place_of(self._options)
        return Snapshot.open(place.uri, storage_options=place.storage_options, allowed_roots=self._roots())

    def _snapshot(self, may_stream: bool = False) -> Snapshot:
        self._options.check_read(under_connect=True, may_stream=may_stream)
        # The scan is planned on the version of the schema.
        wanted = _wanted(self._options) if self._version is None else (self._version, None)
        place = place_of(self._options)
        return Snapshot.open(place.uri, *wanted, place.storage_options, allowed_roots=self._roots())

    def _changes(self) -> SparkChanges:
        self._options.check_read()
        place = place_of(self._options)
        newest = Snapshot.open(place.uri, storage_options=place.storage_options, allowed_roots=self._roots())
        if self._versions is not None:  # The scan must be planned on the versions of the returned schema.
            return newest.spark_changes(ChangeRange(*self._versions))
        (start, start_ms), (end, end_ms) = (
            version_or_time(self._options, f"{name}Version", f"{name}Timestamp") for name in _BOUNDS
        )
        return newest.spark_changes(ChangeRange(start, end, start_ms, end_ms))


class CommandReader(DataSourceReader):
    """A reader of one row: the result of a command of `DeltaTable`, computed when the query is planned."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield (self._answer,)


class FragmentPartition(InputPartition):
    """A group of files, packed by the core."""

    def __init__(self, fragment: bytes) -> None:
        super().__init__(fragment)


class VersionsPartition(InputPartition):
    """A range of versions of a change data feed, including both ends."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))


class DeltalogReader(DataSourceReader):
    """A reader that plans on the driver and reads in the workers."""

    def __init__(
        self, place: Place, snapshot: Snapshot, schema: StructType, partitions: int, options: Options
    ) -> None:
        self._place = place
        self._version = snapshot.version
        self._row_ids = options.wants_row_ids
        self._positions = options.wants_positions
        self._condition = options.condition
        self._roots = snapshot.allowed_roots
        self._schema = schema
        self._partitions = partitions
        self._filters = ""

    def partitions(self) -> Sequence[InputPartition]:
        uri, storage_options = self._place
        snapshot = Snapshot.open(
            uri, version=self._version, storage_options=storage_options, allowed_roots=self._roots
        )
        return [
            FragmentPartition(fragment)
            for fragment in snapshot.scan_partitions(
                self._filters, self._partitions, self._row_ids, self._positions, condition=self._condition
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow

        # Spark passes a placeholder if there are no partitions.
        if not isinstance(partition, FragmentPartition):
            return
        # Spark requires exactly its own types, including nullability.
        expected = arrow_schema(self._schema)
        for batch in pyarrow.RecordBatchReader.from_stream(
            read_fragment(partition.value, self._place.storage_options)
        ):
            yield batch.cast(expected)


class ChangesReader(DataSourceReader):
    """A reader of the change data feed in the schema of its last version. Each partition is a range of versions."""

    def __init__(
        self,
        place: Place,
        snapshot: Snapshot,
        versions: tuple[int, int] | None,
        schema: StructType,
        partitions: int,
    ) -> None:
        self._place = place
        self._roots = snapshot.allowed_roots
        self._versions = versions
        self._schema = schema
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        if self._versions is None:
            return []
        first, last = self._versions
        step = -(-(last + 1 - first) // max(self._partitions, 1))
        return [
            VersionsPartition(start, min(start + step - 1, last)) for start in range(first, last + 1, step)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow

        # Spark passes a placeholder if there are no partitions.
        if not isinstance(partition, VersionsPartition) or self._versions is None:
            return
        first, last = self._versions
        start, end = partition.value
        uri, storage_options = self._place
        newest = Snapshot.open(uri, version=last, storage_options=storage_options, allowed_roots=self._roots)
        rows = newest.changes(
            ChangeRange(first, last), predicate=f"_commit_version >= {start} AND _commit_version <= {end}"
        )
        expected = arrow_schema(self._schema)
        for batch in pyarrow.RecordBatchReader.from_stream(rows):
            yield batch.cast(expected)


class PruningReader(DeltalogReader):
    """A reader that prunes files by the filters that Spark pushes down."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802 (Spark's name)
        """Keeps the filters for pruning, and returns all of them so that Spark applies them to the rows."""
        self._filters = filter_text(filters)
        yield from filters


class PruningDataSource(DeltalogDataSource):
    """The source for sessions with filter pushdown."""

    def _reader_type(self) -> type[DeltalogReader]:
        return PruningReader


class Alias(DeltalogDataSource):
    """The source under the name `delta`."""

    @classmethod
    def name(cls) -> str:
        return "delta"


class PruningAlias(Alias, PruningDataSource):
    """The source under the name `delta`, for sessions with filter pushdown."""


class FragmentMessage(WriterCommitMessage):
    """The files that a task wrote."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment


class DeltalogWriter(DataSourceArrowWriter):
    """A writer whose workers receive a task and write Arrow batches. The driver commits their files."""

    def __init__(
        self,
        place: Place,
        token: bytes,
        task: WriteTask,
        parameters: dict[str, str],
        user_metadata: str | None = None,
    ) -> None:
        self._place = place
        self._token = token
        self._task = task
        self._parameters = parameters
        self._user_metadata = user_metadata

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        fragment = written(self._task, self._place, iterator)
        return WriterCommitMessage() if fragment is None else FragmentMessage(fragment)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        try:
            write = SparkWrite.resume(self._token, self._place.storage_options)
        except DeltaError:
            self._delete()
            raise
        outcome = write.commit_fragments(
            _fragments(messages),
            "WRITE",
            self._parameters,
            f"Apache-Spark-Python deltalog/{__version__}",
            self._user_metadata,
        )
        # Spark ends this process without waiting for its threads.
        upkeep.wait()
        if isinstance(outcome, AlreadyApplied):
            log_applied(outcome, self._place.uri)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Deletes the files of a job that failed. In this case, the message of at least one task is missing.

        Spark also calls this method after a failed commit, in another process. In that case the commit has already
        deleted the files, unless its outcome is unknown.
        """
        if None in messages:
            self._delete()

    def _delete(self) -> None:
        with contextlib.suppress(DeltaError):  # The first error is the one to raise.
            SparkWrite.delete(self._token, self._place.storage_options)


class NothingToWrite(DataSourceArrowWriter):
    """The writer for a write that the table has already recorded. It does not read the rows."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return WriterCommitMessage()


def _fragments(messages: list[WriterCommitMessage | None]) -> list[Fragment]:
    return [message.fragment for message in messages if isinstance(message, FragmentMessage)]


def _wanted(options: Options) -> tuple[int | None, int | None]:
    return version_or_time(options, "versionAsOf", "timestampAsOf")
