"""The sink of a stream, which writes each batch as one commit. Called by `StreamSink.java`.

- Each commit records the id of the query and the number of the batch (protocol: "Transaction Identifiers"). A batch
  that the table has already recorded is not written again. This is checked before any row is computed, and again by
  the commit.
- The output mode `append` adds the rows, and `complete` replaces all rows of the table. Spark's own plan of the batch
  computes the rows, so that the query keeps its state, watermark and metrics.
- If the query reads the table that it writes to, each batch is based on the newest version and conflicts with every
  concurrent change of the table's rows, as in the JVM connector. Other batches are blind appends, which never conflict
  with other appends.
- After a query was stopped, nothing is committed. The files of a failed batch are deleted.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from deltalog._internal import Snapshot, SparkWrite, TableChange, alter_table
from deltalog.arguments import TableOptions
from deltalog.commit import commit_arguments
from deltalog.errors import TableAlreadyExistsError, hinted
from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError, NotATableError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, location_of
from deltalog.spark.options import Options
from deltalog.spark.streams.known_options import WRITING, ensure_known
from deltalog.spark.write.balance import balance
from deltalog.spark.write.base import OwnRows, is_read
from deltalog.spark.write.job import begin_on, new_table_properties, run
from deltalog.spark.write.overwrite import OPTION as OVERWRITE_MODE
from deltalog.spark.write.record import change_metadata, started
from deltalog.spark.write.request import WriteRequest
from deltalog.spark.write.settings import Settings

_CHECKPOINT = "spark.sql.streaming.checkpointLocation"
_COMPLETE = "Complete"
_MODES = {"Append": "Append", _COMPLETE: "Overwrite"}
"""The names of Spark's `SaveMode` by the names of its `OutputMode`."""


class Stream(NamedTuple):
    """The properties of a stream that are the same for all its batches."""

    mode: str
    """The name of Spark's `OutputMode`."""
    partition_by: list[str]
    """The columns that the user passed to `partitionBy`; empty if the user did not call it."""
    is_adaptive: bool
    """Whether adaptive query execution is enabled in the session that started the stream."""

    @classmethod
    def of_json(cls, text: str) -> "Stream":
        return cls.of_parts(json.loads(text))

    @classmethod
    def of_parts(cls, parts: dict[str, Any]) -> "Stream":
        return cls(parts["mode"], parts["partitionBy"], parts["isAdaptive"])


class Batch(NamedTuple):
    """A batch of a stream."""

    stream: Stream
    query: str
    """The id of the query, which is stored in its checkpoint."""
    number: int

    @classmethod
    def of_json(cls, text: str) -> "Batch":
        parts = json.loads(text)
        if parts["query"] is None:
            raise InvalidArgumentError(
                "a batch can only be written by a streaming query of Spark, which has an id"
            )
        return cls(Stream.of_parts(parts), parts["query"], parts["number"])

    @property
    def parameters(self) -> dict[str, str]:
        """The operation parameters of the batch's commit, which the history of the table shows."""
        return {"outputMode": self.stream.mode, "queryId": self.query, "epochId": str(self.number)}


def start(jvm: Jvm, session: Any, options: Options, stream: Stream, *, creates: bool) -> None:
    """Raises an error if a stream cannot write to this location, or with these options or this output mode.

    Args:
        creates: whether the caller will create the table. Then the checkpoint location is checked here, because Spark
            checks it only after the table exists.
    """
    _check(options, stream)
    has_checkpoint = (
        "checkpointlocation" in options.values or session.conf().get(_CHECKPOINT, None) is not None
    )
    if creates and not has_checkpoint:
        raise InvalidArgumentError(
            f"the stream has no checkpoint, and its table {options.path} was not created: set the option "
            f"checkpointLocation, or {_CHECKPOINT} in the session"
        )
    location_of(jvm, session, options).ensure_in_reach()


def _check(options: Options, stream: Stream) -> None:
    if stream.mode not in _MODES:
        raise UnsupportedFeatureError(
            f"deltalog does not support the output mode {stream.mode.lower()}, only append and complete: to change "
            "rows, use foreachBatch with a MERGE"
        )
    options.check_stream_write(is_complete=stream.mode == _COMPLETE)
    ensure_known(options, WRITING)


def complete_definition(jvm: Jvm, session: Any, options: Mapping[str, str]) -> None:
    """Sets the table properties among the options of a stream, if the table was just created.

    `toTable` needs this because Spark creates its table without the options. Does nothing if the table has rows or
    later versions.

    Args:
        options: the options, with their names as the user has spelled them, because names of properties are
            case-sensitive.
    """
    properties = {name: value for name, value in options.items() if name.lower().startswith("delta.")}
    if not properties:
        return
    snapshot = _newest(location_of(jvm, session, Options(options)))
    if snapshot is None or snapshot.version > 0 or snapshot.num_files() > 0:
        return
    known = snapshot.configuration
    missing = {name: value for name, value in properties.items() if known.get(name) != value}
    if missing:
        arguments = commit_arguments(None, change_metadata(Settings.of(jvm, session)))
        alter_table(snapshot, TableChange.set_properties(missing), arguments)


def write(jvm: Jvm, session: Any, options: Options, rows: Any, batch: Batch, sink: Any) -> None:
    """Writes and commits the rows of a batch, unless the table has already recorded the batch.

    Args:
        sink: the `StreamSink` of Java.
    """
    stream = batch.stream
    _check(options, stream)
    if stream.mode == _COMPLETE:
        options = options.with_value(OVERWRITE_MODE, "static")
    location = location_of(jvm, session, options)
    request = WriteRequest.of(jvm, session, location, options, rows, (batch.query, batch.number))
    request = request._replace(settings=request.settings._replace(is_adaptive=stream.is_adaptive))
    pending = _begun(request, stream)
    if pending is None:
        return
    is_shuffled = balance(options, request.settings, pending) is not None
    computed = sink.rows(rows, is_shuffled)
    request = request._replace(rows=computed, session=computed.sparkSession())
    try:
        # If the job shuffles rows, Spark adapts its plan. The job then gets its own execution, because Spark shows an
        # adapted plan only as part of one.
        run(
            request,
            pending,
            "STREAMING UPDATE",
            batch.parameters,
            sink.ensureWanted,
            is_part_of_execution=not is_shuffled,
        )
    except TableAlreadyExistsError as error:
        error.args = (str(error).removesuffix(f"; {error.hint}"),)
        hinted(error, "nothing was committed; start the query again, which then appends to the table")
        raise


def _begun(request: WriteRequest, stream: Stream) -> SparkWrite | None:
    """Begins the write of a batch, which may create the table. Returns None if the table has already recorded the
    batch.
    """
    options, location = request.options, request.location
    table = TableOptions(stream.partition_by or None, new_table_properties(request))
    clustering = options.clustering()
    own = None
    if clustering is not None or is_read(request.sources, request.uri):
        newest = _newest(location)
        if newest is None and clustering is not None:
            return _defined(request, table, clustering)
        if newest is not None:
            _check_clustering(newest, clustering)
            own = OwnRows(newest, [""]) if is_read(request.sources, request.uri) else None
    return begin_on(request, _MODES[stream.mode], table, own)


def _defined(request: WriteRequest, table: TableOptions, clustering: list[str]) -> SparkWrite | None:
    """Begins the creation of a table with clustering columns."""
    begun = SparkWrite.define(
        request.uri,
        schema.of_data(request.schema_json),
        "error",
        table,
        request.location.storage_options,
        [f"`{name.replace('`', '``')}`" for name in clustering],
        None,
        request.record.app_transaction,
    )
    return started(begun, request.uri)


def _check_clustering(newest: Snapshot, clustering: list[str] | None) -> None:
    """Raises an error if the option `clusterBy` differs from the table's clustering columns."""
    known = newest.clustering_columns()
    if clustering is None or [[name.lower()] for name in clustering] == [
        [part.lower() for part in path] for path in known
    ]:
        return
    has = ", ".join(".".join(path) for path in known) or "nothing"
    raise InvalidArgumentError(
        f"the table {newest.uri} is clustered by {has}, not by {', '.join(clustering)}: leave clusterBy out, or use "
        "ALTER TABLE … CLUSTER BY"
    )


def _newest(location: Location) -> Snapshot | None:
    try:
        return Snapshot.open(location.uri, storage_options=location.storage_options)
    except NotATableError:
        return None
