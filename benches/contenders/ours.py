"""deltalog from Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benches.contenders import appends, changed, log, ordered, rows, written
from benches.tables import broad as many_columns
from benches.tables import littered
from benches.tables.actions import NARROW, WIDE
from benches.watch import Watch, peak_bytes

# The names are imported here, because the package loads a module only when one of its names is first used, and loading
# must not be measured.
from deltalog import DeltaError, DeltaTable, convert_to_delta, upkeep, write_deltalake

COLUMNS = ["path", "size", "partition_values"]


def _count(files: Any) -> int:
    """Reads the stream batch by batch, and keeps no batch in memory."""
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(files))


def open_list(
    watch: Watch, table: str, options: dict[str, str] | None = None, lap: str = "open + list"
) -> dict[str, Any]:
    with watch(lap):
        with watch("open"):
            opened = DeltaTable(table, storage_options=options)
            opened.protocol(), opened.metadata(), opened.schema()
        files = size = 0
        for batch in pa.RecordBatchReader.from_stream(opened.files(columns=COLUMNS)):
            files += batch.num_rows
            size += pc.sum(batch.column("size")).as_py() or 0
    return {"version": opened.version(), "files": files, "bytes": size}


def store_open_list(watch: Watch, table: str, options: dict[str, str], local: str) -> dict[str, Any]:
    open_list(watch, local, lap="open + list, local")
    return open_list(watch, table, options)


def store_append(watch: Watch, table: str, options: dict[str, str]) -> dict[str, Any]:
    return append(watch, table, options)


def store_scan(watch: Watch, table: str, options: dict[str, str]) -> dict[str, Any]:
    with watch("all columns"):
        everything = rows.take(DeltaTable(table, storage_options=options).to_arrow(view_types=True))
    return {"rows": everything[0], "sum": everything[1]}


def list_held(watch: Watch, table: str) -> dict[str, Any]:
    before = peak_bytes()
    with watch("held"):
        # `pa.table` is not used, because it would import pandas first.
        files = pa.RecordBatchReader.from_stream(DeltaTable(table).files(columns=COLUMNS)).read_all()
    watch.note("held", "heap_bytes", peak_bytes() - before)
    return {"files": files.num_rows, "bytes": pc.sum(files["size"]).as_py()}


def plan(watch: Watch, table: str, predicate: str) -> dict[str, Any]:
    with watch("plan"):
        files = _count(DeltaTable(table).files(predicate=predicate, columns=COLUMNS))
    return {"files": files}


def refresh(watch: Watch, table: str, commit: str, commit_to: str) -> dict[str, Any]:
    opened = DeltaTable(table)
    with watch("no-op"):
        opened.update_incremental()
    before = opened.version()
    os.link(commit, commit_to)
    with watch("one commit"):
        opened.update_incremental()
    return {"before": before, "after": opened.version()}


def checkpoint(watch: Watch, table: str) -> dict[str, Any]:
    with watch("checkpoint"):
        opened = DeltaTable(table)
        opened.create_checkpoint()
    return {"version": opened.version(), "files": log.files_of_checkpoint(table, opened.version())}


def checkpoint_again(watch: Watch, table: str, commits: str) -> dict[str, Any]:
    """Writes two V2 checkpoints. Afterwards it lists the files of the newest version, to check that the second
    checkpoint has them all.
    """
    opened = DeltaTable(table)
    with watch("whole"):
        opened.create_checkpoint()
    log.put_into_place(commits, table)
    opened.update_incremental()
    with watch("after five commits"):
        opened.create_checkpoint()
    log.remove_all_but_newest_checkpoint(table)
    again = DeltaTable(table)
    return {"version": again.version(), "files": _count(again.files(columns=COLUMNS))}


def vacuum(watch: Watch, table: str, copy: str) -> dict[str, Any]:
    with watch("dry run"):
        found = DeltaTable(table).vacuum()
    with watch("delete"):
        deleted = DeltaTable(copy).vacuum(dry_run=False)
    return {"found": littered.count(found), "deleted": littered.count(deleted)}


def convert(watch: Watch, table: str) -> dict[str, Any]:
    with watch("convert"):
        made = convert_to_delta(table, partition_by=pa.schema([("part", pa.int32())]))
    return {"files": len(made.file_uris()), "rows": made.count()}


def append(watch: Watch, table: str, options: dict[str, str] | None = None) -> dict[str, Any]:
    opened, row = DeltaTable(table, storage_options=options), appends.row(WIDE)

    def one() -> None:
        write_deltalake(opened, row, mode="append")

    def settle() -> None:
        upkeep.wait()

    appends.measure(watch, "one row", one, opened.update_incremental, settle)
    version = opened.version()
    appends.measure_beside(watch, "one row, beside a checkpoint", one, opened.update_incremental)
    settle()
    return {"version": version}


def store_unanswered(
    watch: Watch, table: str, options: dict[str, str], writers: int, each: int
) -> dict[str, Any]:
    def writer() -> Callable[[pa.Table], object]:
        opened = DeltaTable(table, storage_options=options)
        return lambda row: write_deltalake(opened, row, mode="append")

    def ids() -> pa.Array:
        return pa.table(DeltaTable(table, storage_options=options).to_arrow())["id"]

    return appends.unanswered(watch, writers, each, writer, (DeltaError,), ids)


def broad(watch: Watch, table: str) -> dict[str, Any]:
    """Measures each operation on two tables. The second table has ten times as many columns as the first one."""
    answers: dict[str, Any] = {}
    for which in ("narrow", "broad"):
        path = f"{table}/{which}"
        # The cached table is dropped, because keeping tables in memory is not part of the measurement.
        added = many_columns.rows(len(DeltaTable(path).schema().fields))
        with watch(f"open, {which}"):
            opened = DeltaTable(path)
            opened.schema()
        with watch(f"read one file, {which}"):
            read = pa.RecordBatchReader.from_stream(opened.to_arrow()).read_all().num_rows
        with watch(f"append, {which}"):
            write_deltalake(opened, added, mode="append")
        with watch(f"delete, {which}"):
            opened.delete("c1 = 2")
        with watch(f"checkpoint, {which}"):
            opened.create_checkpoint()
        answers |= {
            f"{which} read": read,
            f"{which} version": opened.version(),
            f"{which} count": opened.count(),
        }
    return answers


def append_at_once(watch: Watch, table: str, threads: int, each: int) -> dict[str, Any]:
    row = appends.row(NARROW)

    def one() -> None:
        write_deltalake(table, row, mode="append")

    appended = appends.at_once(watch, "per append", one, threads, each)
    return {"appended": log.appended(table, appended)}


def write(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return written.measure(watch, table, target, write_deltalake)


def write_partitioned(watch: Watch, table: str, target: str, partitions: int) -> dict[str, Any]:
    return written.measure_partitioned(watch, table, target, partitions, write_deltalake)


def scan(watch: Watch, table: str) -> dict[str, Any]:
    with watch("filter"):
        some = rows.take(DeltaTable(table).to_arrow(columns=[rows.COLUMN], predicate=rows.PREDICATE))
    with watch("all columns"):
        everything = rows.take(DeltaTable(table).to_arrow(view_types=True))
    with watch("all columns, plain strings"):
        plain = rows.take(DeltaTable(table).to_arrow())
    if plain[0] != everything[0]:
        raise ValueError(f"{plain[0]} rows with plain strings, {everything[0]} with views")
    return rows.answer(some, everything)


def statements(watch: Watch, table: str) -> dict[str, Any]:
    opened = DeltaTable

    def merge(table: str) -> object:
        found = opened(table)
        merger = found.merge(
            changed.source(pa.schema(found.schema())), f"target.{changed.KEY} = source.{changed.KEY}"
        )
        return merger.when_matched_update(changed.MERGED).when_not_matched_insert_all().execute()

    def count(table: str) -> int:
        return opened(table).count() or 0

    def vectors(table: str) -> None:
        opened(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"})

    run: dict[str, Callable[[str], object]] = {
        "delete": lambda table: opened(table).delete(changed.DELETE),
        "update": lambda table: opened(table).update(changed.VALUES, predicate=changed.UPDATE),
        "merge": merge,
    }
    left = changed.measure(watch, table, "", run, count, vectors)
    return {**left, **changed.measure(watch, table, ", rewrite", run, count)}


def optimize(watch: Watch, table: str) -> dict[str, Any]:
    opened = DeltaTable(table)
    with watch("optimize"):
        opened.optimize.compact(target_size=ordered.JOINED)
    return ordered.answer(table)


def z_order(watch: Watch, table: str) -> dict[str, Any]:
    opened, size = DeltaTable(table), ordered.target_size(table)
    with watch("z-order"):
        opened.optimize.z_order(ordered.COLUMNS, target_size=size)
    return ordered.answer(table)
