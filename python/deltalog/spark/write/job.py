"""Executes writes: the core checks the write, Spark's Parquet writer writes files, and the core commits the files that
tasks report.

- Nothing is written before `SparkWrite.begin` and the conversion of the columns have succeeded.
- Readers see nothing before the commit. A job that fails or is interrupted is not committed.
- The commit contains the files of the tasks that Spark has accepted (`TableCommitProtocol.java`); no directory is
  listed.
"""

import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deltalog._internal import AlreadyApplied, DeltaError, Snapshot, SparkWrite, __version__, table_exists
from deltalog.arguments import TableOptions
from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, location_of
from deltalog.spark.options import Options
from deltalog.spark.write.base import OwnRows, read_before
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.compaction import AutoCompaction
from deltalog.spark.write.defaults import defaults_of, with_defaults
from deltalog.spark.write.evolution import schema_mode
from deltalog.spark.write.interrupts import RunningWrite, running_write
from deltalog.spark.write.overwrite import replaced_rows
from deltalog.spark.write.record import Record, log_applied, started
from deltalog.spark.write.request import WriteRequest
from deltalog.spark.write.rows import FileRows, file_rows
from deltalog.spark.write.settings import Settings

_log = logging.getLogger("deltalog.spark")


def save(jvm: Jvm, session: Any, data: Any, options: Options, mode: str, location: Location) -> int | None:
    """Executes `df.write.format("deltalog")…save(path)`; `mode` is the name of Spark's `SaveMode`.

    Returns the committed version; None if there was nothing to do.
    """
    options.check_write()
    partition_by = options.partition_by()
    request = WriteRequest.of(jvm, session, location, options, data)
    pending = begin(request, mode, TableOptions(partition_by, new_table_properties(request)))
    if pending is None:
        return None
    parameters = {"mode": mode, "partitionBy": json.dumps(partition_by or [])}
    if options.replace_where is not None:
        parameters["predicate"] = options.replace_where
    return run(request, pending, "WRITE", parameters)


def new_table_properties(request: WriteRequest) -> dict[str, str]:
    """Returns the properties of a table that the write creates, from its options and from the session."""
    configuration = request.options.table_configuration()
    defaults = defaults_of(request.settings)
    if defaults and not table_exists(request.uri, request.location.storage_options):
        return with_defaults(configuration, defaults)
    return configuration


def insert(jvm: Jvm, session: Any, data: Any, options: Options, overwrite: bool) -> None:
    """Executes `INSERT INTO` and `INSERT OVERWRITE`. Spark has already arranged the columns in the table's order."""
    _check_newest(options)
    if options.wants_changes:
        raise InvalidArgumentError("a change data feed cannot be written")
    location = location_of(jvm, session, options)
    request = WriteRequest.of(jvm, session, location, options, data)
    mode = "Overwrite" if overwrite else "Append"
    pending = begin(request, mode, TableOptions())
    if pending is not None:
        parameters = {"mode": mode, "partitionBy": "[]"}
        if options.replace_where is not None:
            parameters["predicate"] = options.replace_where
        run(request, pending, "WRITE", parameters)


def truncate(jvm: Jvm, session: Any, options: Options) -> None:
    """Executes `TRUNCATE TABLE`, which removes all rows."""
    _check_newest(options)
    location = location_of(jvm, session, options)
    settings = Settings.of(jvm, session)
    record = Record.of_session(options, settings)
    begun = SparkWrite.begin(
        location.uri,
        Snapshot.open(location.uri, storage_options=location.storage_options).schema_json,
        "overwrite",
        TableOptions(),
        location.storage_options,
        app_transaction=record.app_transaction,
    )
    pending = started(begun, location.uri)
    outcome = None
    if pending is not None:
        outcome = pending.commit("TRUNCATE", {}, engine_info(settings), user_metadata=record.user_metadata)
    record.finish(session)
    if isinstance(outcome, int):
        refresh(jvm, session, location.uri, outcome)


def _check_newest(options: Options) -> None:
    if options.wants_version:
        raise InvalidArgumentError("an older version of a table cannot be written")


def begin(request: WriteRequest, mode: str, table: TableOptions) -> SparkWrite | None:
    """Checks a write against the table; `mode` is the name of Spark's `SaveMode`.

    Returns None if the write is skipped: the mode is `Ignore` and the table exists, or the table has already recorded
    the write of an application. If the rows were read from the same table, the write is based on the version that was
    read, and depends on these rows.
    """
    request.options.check_mode(mode.lower())
    return begin_on(request, mode, table, read_before(request, mode.lower()))


def begin_on(request: WriteRequest, mode: str, table: TableOptions, own: OwnRows | None) -> SparkWrite | None:
    """Does the same as `begin` for a write that reads the rows `own` of its table; `own` is None if it reads none."""
    options, settings, record = request.options, request.settings, request.record
    replaced = replaced_rows(options, settings)
    begun = SparkWrite.begin(
        request.uri,
        schema.of_data(request.schema_json),
        mode.lower(),
        table,
        request.location.storage_options,
        base=None if own is None else own.base,
        partition_overwrite=replaced.mode or "static",
        app_transaction=record.app_transaction,
        replace_where=replaced.where,
        schema_mode=schema_mode(options, settings),
        reads=None if own is None else (own.filters, settings.time_zone),
    )
    pending = started(begun, request.uri)
    if isinstance(begun, AlreadyApplied):
        record.finish(request.session)
    return pending


def run(
    request: WriteRequest,
    pending: SparkWrite,
    operation: str,
    parameters: Mapping[str, str],
    ensure_wanted: Callable[[], object] | None = None,
    *,
    is_part_of_execution: bool = False,
) -> int | None:
    """Writes and commits the rows. Returns the version; None if the table has already recorded the write.

    If anything fails before the commit, the written files are deleted. `ensure_wanted` raises an exception if the write
    was stopped, and is called before the job and before the commit.
    """
    session, settings, record = request.session, request.settings, request.record
    with running_write(session, ensure_wanted) as running:
        try:
            settings.check_calendar()
            compaction = AutoCompaction.of(settings)
            text = job_text(
                file_rows(request, pending),
                pending,
                request.options,
                running,
                is_part_of_execution=is_part_of_execution,
            )
            run_job(request.jvm, session, request.rows, text, pending, running)
            running.begin_commit()
        except BaseException:
            with contextlib.suppress(DeltaError):  # The first error is the one to raise.
                pending.abort()
            raise
    outcome = pending.commit(operation, parameters, engine_info(settings), record.user_metadata, compaction)
    record.finish(session)
    if isinstance(outcome, AlreadyApplied):
        log_applied(outcome, request.uri)
        return None
    refresh(request.jvm, session, request.uri, outcome)
    return outcome


def job_text(
    rows: FileRows,
    pending: SparkWrite,
    options: Options,
    running: RunningWrite,
    marked: Mapping[str, Any] | None = None,
    *,
    is_part_of_execution: bool = False,
) -> str:
    """Describes a job that writes rows, for `FileJob.java`.

    Args:
        rows: how the rows are converted.
        pending: the write that the job is a part of.
        options: the options of the write.
        running: the running write, through which the job can be cancelled.
        marked: how the rows of a statement are marked (`MarkedRows.java`).
        is_part_of_execution: whether the job belongs to an execution that Spark already shows in its UI.
    """
    parts = {
        "tag": running.tag,
        "url": pending.location,
        "rows": rows.parts,
        "partitionColumns": rows.partition_columns,
        "options": {**pending.parquet_options, **options.for_parquet_writer()},
        "marked": marked,
        "isPartOfExecution": is_part_of_execution,
    }
    return json.dumps(parts)


def run_job(
    jvm: Jvm,
    session: Any,
    rows: Any,
    text: str,
    pending: SparkWrite,
    running: RunningWrite,
    marked: Any | None = None,
) -> None:
    """Writes rows of the JVM, as described by `job_text`. `marked` is a `MarkedRows` for rows of a special kind."""
    running.check()
    job = jvm.new("FileJob", session, rows, text, marked)
    receive(pending, job.run, job.reports)


def receive(pending: SparkWrite, run: Callable[[], Any], reports: Callable[[], Any]) -> None:
    """Runs a job, and passes the reports of its tasks to the write. If a job fails, the write needs the `reports` to
    delete the job's files. If they are not available, the files are not deleted, and the job's own error is raised.
    """
    try:
        found = run()
    except BaseException:
        try:
            pending.add_reports(_received(reports()))
        except Exception as error:  # noqa: BLE001 (whatever fails, the first error is the one to raise)
            _log.warning(
                "%s: files of a job that has failed stay until VACUUM deletes them, because their names are not known: "
                "%s",
                pending.location,
                error,
            )
        raise
    pending.add_reports(_received(found))


def _received(reports: Any) -> bytes:
    """Returns the bytes of the tasks' reports, which the JVM may have written to a file."""
    if not isinstance(reports, str):
        return bytes(reports)
    file = Path(reports)
    try:
        return file.read_bytes()
    finally:
        file.unlink()


def engine_info(settings: Settings) -> str:
    return f"Apache-Spark/{settings.spark_version} deltalog/{__version__}"
