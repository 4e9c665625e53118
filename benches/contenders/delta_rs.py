"""The Python package `deltalake` (delta-rs): loads the whole table, then lists all files with all their properties as
Arrow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, convert_to_deltalake, write_deltalake
from deltalake.exceptions import DeltaError

from benches.contenders import appends, changed, log, ordered, rows, written
from benches.tables import littered
from benches.tables.actions import NARROW, WIDE
from benches.watch import Watch, peak_bytes


def open_list(watch: Watch, table: str, options: dict[str, str] | None = None) -> dict[str, Any]:
    with watch("open + list"):
        with watch("open"):
            opened = DeltaTable(table, storage_options=options)
            opened.protocol(), opened.metadata(), opened.schema()
        files = opened.get_add_actions()
    size = sum(files.column("size_bytes").to_pylist())
    return {"version": opened.version(), "files": files.num_rows, "bytes": size}


def store_open_list(watch: Watch, table: str, options: dict[str, str], local: str) -> dict[str, Any]:
    return open_list(watch, table, options)


def store_append(watch: Watch, table: str, options: dict[str, str]) -> dict[str, Any]:
    return append(watch, table, options)


def store_unanswered(
    watch: Watch, table: str, options: dict[str, str], writers: int, each: int
) -> dict[str, Any]:
    def writer() -> Callable[[pa.Table], object]:
        opened = DeltaTable(table, storage_options=options)
        return lambda row: write_deltalake(opened, row, mode="append")

    def ids() -> pa.Array:
        return DeltaTable(table, storage_options=options).to_pyarrow_table()["id"]

    return appends.unanswered(watch, writers, each, writer, (DeltaError, OSError), ids)


def store_scan(watch: Watch, table: str, options: dict[str, str]) -> dict[str, Any]:
    with watch("all columns"):
        everything = rows.take(DeltaTable(table, storage_options=options).scan())
    return {"rows": everything[0], "sum": everything[1]}


def list_held(watch: Watch, table: str) -> dict[str, Any]:
    before = peak_bytes()
    with watch("held"):
        files = DeltaTable(table).get_add_actions()
    watch.note("held", "heap_bytes", peak_bytes() - before)
    return {"files": files.num_rows, "bytes": sum(files.column("size_bytes").to_pylist())}


def plan(watch: Watch, table: str, predicate: str) -> dict[str, Any]:
    with watch("plan"):
        files = len(DeltaTable(table).file_uris(file_pruning_predicate=predicate))
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


def vacuum(watch: Watch, table: str, copy: str) -> dict[str, Any]:
    with watch("dry run"):
        found = DeltaTable(table).vacuum(full=True)
    with watch("delete"):
        deleted = DeltaTable(copy).vacuum(dry_run=False, full=True)
    return {"found": littered.count(found), "deleted": littered.count(deleted)}


def convert(watch: Watch, table: str) -> dict[str, Any]:
    columns = Schema.from_arrow(pa.schema([("part", pa.int32())]))
    with watch("convert"):
        convert_to_deltalake(table, partition_by=columns, partition_strategy="hive")
    made = DeltaTable(table)
    return {"files": len(made.file_uris()), "rows": made.count()}


def append(watch: Watch, table: str, options: dict[str, str] | None = None) -> dict[str, Any]:
    opened, row = DeltaTable(table, storage_options=options), appends.row(WIDE)

    def one() -> None:
        write_deltalake(opened, row, mode="append")

    # `deltalake` writes the checkpoint before the append returns, so there is no background work to wait for.
    appends.measure(watch, "one row", one, opened.update_incremental, settle=lambda: None)
    return {"version": opened.version()}


def append_at_once(watch: Watch, table: str, threads: int, each: int) -> dict[str, Any]:
    """Appends from several threads. The number of retries is practically unlimited, because by default `deltalake`
    gives up after losing 15 versions to other writers.
    """
    row, properties = appends.row(NARROW), CommitProperties(max_commit_retries=1_000_000)

    def one() -> None:
        write_deltalake(table, row, mode="append", commit_properties=properties)

    appended = appends.at_once(watch, "per append", one, threads, each)
    return {"appended": log.appended(table, appended)}


def write(watch: Watch, table: str, target: str) -> dict[str, Any]:
    return written.measure(watch, table, target, write_deltalake)


def write_partitioned(watch: Watch, table: str, target: str, partitions: int) -> dict[str, Any]:
    return written.measure_partitioned(watch, table, target, partitions, write_deltalake)


def scan(watch: Watch, table: str) -> dict[str, Any]:
    """Reads with the package's built-in engine (DataFusion), which is faster than its pyarrow dataset."""
    with watch("filter"):
        some = rows.take(DeltaTable(table).scan(columns=[rows.COLUMN], predicate=rows.PREDICATE))
    with watch("all columns"):
        everything = rows.take(DeltaTable(table).scan())
    return rows.answer(some, everything)


def statements(watch: Watch, table: str) -> dict[str, Any]:
    def merge(table: str) -> object:
        found = DeltaTable(table)
        merger = found.merge(
            changed.source(pa.schema(found.schema().to_arrow())),
            f"target.{changed.KEY} = source.{changed.KEY}",
            source_alias="source",
            target_alias="target",
        )
        return merger.when_matched_update(changed.MERGED).when_not_matched_insert_all().execute()

    def count(table: str) -> int:
        return int(DeltaTable(table).count())

    run: dict[str, Callable[[str], object]] = {
        "delete": lambda table: DeltaTable(table).delete(changed.DELETE),
        "update": lambda table: DeltaTable(table).update(changed.VALUES, predicate=changed.UPDATE),
        "merge": merge,
    }
    return changed.measure(watch, table, "", run, count)


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
