"""Execution of writes: the core checks, Spark's Parquet writer writes files, and the core commits what tasks report.

- Nothing is written before `SparkWrite.begin` and the conversion of the columns have succeeded.
- Readers see nothing before the commit. A job that fails or is interrupted is not committed.
- What is committed is what those tasks report that Spark has accepted (`TableCommitProtocol.java`); no directory is
  listed.
"""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalog._internal import AlreadyApplied, DeltaError, Snapshot, SparkWrite, __version__, table_exists
from deltalog.arguments import TableOptions
from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import uri_of
from deltalog.spark.options import Options
from deltalog.spark.sql.definition import defaults_of, with_defaults
from deltalog.spark.write import fit, rules
from deltalog.spark.write.base import base_among, base_of, requested_base
from deltalog.spark.write.evolution import schema_mode
from deltalog.spark.write.identity import counted_columns, with_numbers
from deltalog.spark.write.interrupts import RunningWrite, running_write
from deltalog.spark.write.overwrite import replaced_rows
from deltalog.spark.write.record import Record, log_applied, started


def save(jvm: Jvm, session: Any, data: Any, options: Options, mode: str) -> int | None:
    """Executes `df.write.format("deltalog")…save(path)`; `mode` is the name of Spark's `SaveMode`.

    Returns the committed version; None if there was nothing to do.
    """
    options.check_write()
    partition_by = options.partition_by()
    uri = uri_of(jvm, session, options.path)
    configuration = options.table_configuration()
    defaults = defaults_of(jvm, session)
    if defaults and not table_exists(uri):
        configuration = with_defaults(configuration, defaults)
    table = TableOptions(partition_by, configuration)
    record = Record.of_session(options, session)
    pending = begin(jvm, session, data, uri, mode, table, options, record)
    if pending is None:
        return None
    parameters = {"mode": mode, "partitionBy": json.dumps(partition_by or [])}
    if options.replace_where is not None:
        parameters["predicate"] = options.replace_where
    return run(jvm, session, data, pending, uri, options, "WRITE", parameters, record)


def insert(jvm: Jvm, session: Any, data: Any, options: Options, overwrite: bool) -> None:
    """Executes `INSERT INTO` and `INSERT OVERWRITE`. Spark has put the columns into the table's order."""
    if {"versionasof", "timestampasof", "timestampasofmicros"} & options.values.keys():
        raise InvalidArgumentError("an older version of a table cannot be written")
    if options.wants_changes:
        raise InvalidArgumentError("a change data feed cannot be written")
    uri = uri_of(jvm, session, options.path)
    mode = "Overwrite" if overwrite else "Append"
    record = Record.of_session(options, session)
    pending = begin(jvm, session, data, uri, mode, TableOptions(), options, record)
    if pending is not None:
        parameters = {"mode": mode, "partitionBy": "[]"}
        if options.replace_where is not None:
            parameters["predicate"] = options.replace_where
        run(jvm, session, data, pending, uri, options, "WRITE", parameters, record)


def truncate(jvm: Jvm, session: Any, options: Options) -> None:
    """Executes `TRUNCATE TABLE`, which removes all rows."""
    uri = uri_of(jvm, session, options.path)
    record = Record.of_session(options, session)
    begun = SparkWrite.begin(
        uri,
        Snapshot.open(uri).schema_json,
        "overwrite",
        TableOptions(),
        app_transaction=record.app_transaction,
    )
    pending = started(begun, uri)
    if pending is not None:
        pending.commit("TRUNCATE", {}, engine_info(session), user_metadata=record.user_metadata)
    record.finish(session)


def begin(
    jvm: Jvm,
    session: Any,
    data: Any,
    uri: str,
    mode: str,
    table: TableOptions,
    options: Options,
    record: Record,
) -> SparkWrite | None:
    """Checks a write of `data` against the table; `mode` is the name of Spark's `SaveMode`.

    Returns None if there is nothing to do: the mode is `Ignore` and the table exists, or an application has done the
    write before. If the data of an overwrite was read from the same table, the overwrite is based on the version that
    was read.
    """
    save_mode = mode.lower()
    options.check_mode(save_mode)
    is_overwrite = save_mode == "overwrite"
    replaced = replaced_rows(options, session)
    base = None
    if is_overwrite:
        roots = [uri_of(jvm, session, root) for root in options.allowed_roots]
        if options.base_version is not None:
            base = requested_base(options, uri, roots)
        elif options.sources is not None:
            base = base_among(options.sources, uri, roots)
        else:
            base = base_of(jvm, data, uri, roots)
    begun = SparkWrite.begin(
        uri,
        schema.of_data(data.schema().json()),
        save_mode,
        table,
        base=base,
        partition_overwrite=replaced.mode or "static",
        app_transaction=record.app_transaction,
        replace_where=replaced.where,
        schema_mode=schema_mode(options, session),
    )
    pending = started(begun, uri)
    if isinstance(begun, AlreadyApplied):
        record.finish(session)
    return pending


def run(
    jvm: Jvm,
    session: Any,
    data: Any,
    pending: SparkWrite,
    uri: str,
    options: Options,
    operation: str,
    parameters: Mapping[str, str],
    record: Record,
) -> int | None:
    """Writes and commits `data`. Returns the version; None if an application has done the write meanwhile.

    If anything fails before the commit, the written files are deleted.
    """
    with running_write(session.sparkContext()) as running:
        try:
            check_calendar(session)
            _write_files(jvm, session, data, pending, uri, options, running)
            running.begin_commit()
        except BaseException:
            with contextlib.suppress(DeltaError):  # The first error is the one to raise.
                pending.abort()
            raise
    outcome = pending.commit(operation, parameters, engine_info(session), record.user_metadata)
    record.finish(session)
    if isinstance(outcome, AlreadyApplied):
        log_applied(outcome, uri)
        return None
    return outcome


def _write_files(
    jvm: Jvm, session: Any, data: Any, pending: SparkWrite, uri: str, options: Options, running: RunningWrite
) -> None:
    """Runs the job, and hands the reports of its tasks to the write. Those of a job that fails are needed to delete its
    files.
    """
    if pending.table_schema_json is not None:
        # Each column costs calls to the JVM.
        given = rules.given_columns(jvm, data) if pending.computes_columns else set()
        missing = rules.missing_columns(pending, given)
        counted = counted_columns(pending, given)
        computed = missing | counted.keys()
        table_schema = rules.optional(pending.table_schema_json, computed)
        data = fit.to_table(jvm, session, rules.without(jvm, data, computed), table_schema, uri)
        data = rules.enforced(jvm, with_numbers(jvm, data, counted), pending, missing)
    else:
        # A new table has no rules yet, but an overwrite of some rows may have one.
        data = rules.enforced(jvm, data, pending, set())
    data, partition_columns = for_files(jvm, data, pending)
    run_job(jvm, data, partition_columns, pending, options, running)


def run_job(
    jvm: Jvm,
    data: Any,
    partition_columns: list[str],
    pending: SparkWrite,
    options: Options,
    running: RunningWrite,
    marked: Any | None = None,
) -> Any:
    """Writes the rows as they are, and hands the reports of the tasks to the write. Returns the `FileJob`.

    The rows of a statement are marked (`MarkedRows.java`).
    """
    columns, writer_options = json.dumps(partition_columns), json.dumps(options.for_parquet_writer())
    running.check()
    job = jvm.new("FileJob", data, pending.location, columns, writer_options, marked)
    try:
        job.run()
    finally:
        pending.add_reports(_received(job.reports()))
    return job


def _received(reports: Any) -> bytes:
    """Returns the bytes of reports, which may be in a file."""
    if not isinstance(reports, str):
        return bytes(reports)
    file = Path(reports)
    try:
        return file.read_bytes()
    finally:
        file.unlink()


def for_files(jvm: Jvm, data: Any, pending: SparkWrite, more: int = 0) -> tuple[Any, list[str]]:
    """Returns `data` with the columns of the table's files, and the columns by which rows are partitioned.

    The last `more` columns are not the table's, and stay as they are.
    """
    if pending.directory_columns is not None:
        if pending.physical_schema_json is not None:
            data = fit.to_physical(jvm, data, pending.physical_schema_json, [], more)
        columns, directories = list(pending.physical_partition_columns), list(pending.directory_columns)
        return fit.with_directories(jvm, data, columns, directories, more), directories
    partition_columns = list(pending.partition_columns)
    data = fit.partition_text(jvm, data, partition_columns)
    if pending.physical_schema_json is None:
        return data, partition_columns
    data = fit.to_physical(jvm, data, pending.physical_schema_json, partition_columns, more)
    return data, list(pending.physical_partition_columns)


def engine_info(session: Any) -> str:
    return f"Apache-Spark/{session.version()} deltalog/{__version__}"


def check_calendar(session: Any) -> None:
    """Raises an error if Spark writes dates in the old calendar, which other readers would misinterpret."""
    name = "spark.sql.parquet.datetimeRebaseModeInWrite"
    if session.conf().get(name).upper() == "LEGACY":
        raise InvalidArgumentError(
            f"a Delta table contains dates only in the Gregorian calendar: set {name} to CORRECTED"
        )
