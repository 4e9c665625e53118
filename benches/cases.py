"""Defines the benchmark cases. Each has an operation on a table, its contenders, and targets: ratios and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches import setups
from benches.contender import (
    ARROW_DATASET,
    DELTALAKE,
    DELTALAKE_IN_DUCKDB,
    DELTALAKE_IN_POLARS,
    DUCKDB,
    JVM_PARQUET,
    KERNEL,
    KERNEL_LEAN,
    OURS,
    OURS_IN_DUCKDB,
    OURS_IN_POLARS,
    POLARS,
    SPARK_EXECUTORS,
    SPARK_JVM,
    SPARK_OURS,
    SPARK_PARQUET,
    START_JVM,
    START_OURS,
    START_PARQUET,
    Contender,
)
from benches.tables import Broad, Checkpointed, Commits, Data, Littered, Plain, Streamed, TableSpec

SCALES = ("small", "medium", "full")
TARGET_SCALE = "full"

Setup = Callable[[TableSpec, Path, Path], Mapping[str, Any]]
"""Creates the arguments of one measurement. Its own arguments are the specification of the table, the table's
directory, and an empty directory for this measurement.
"""


@dataclass(frozen=True)
class Ratio:
    """The measurements of `subject` divided by the measurements of `peer`, computed for each round.

    `time` and `memory` are upper limits for the ratio; None means that the ratio is only shown.
    """

    measure: str
    subject: str
    peer: str
    time: float | None = None
    memory: float | None = None
    peer_measure: str | None = None
    """The lap of the peer, if its name differs from the subject's."""


@dataclass(frozen=True)
class Limit:
    """Absolute upper limits for one contender, which is not compared with a peer."""

    measure: str
    contender: str
    seconds: float | None = None
    peak_bytes: int | None = None
    heap_bytes: int | None = None
    """Limit for the growth of a driver's live heap, or of the whole process if there is no driver."""


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    operation: str
    setup: Setup
    tables: Mapping[str, TableSpec]
    """The specification of the table for each scale. A scale without an entry uses the largest one."""
    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]
    limits: tuple[Limit, ...] = field(default=())
    warm_up: int = 0
    """The number of rounds at the beginning whose results are discarded, because a session's compilers and caches are
    cold.
    """

    def table(self, scale: str) -> TableSpec:
        return self.tables.get(scale) or self.tables[max(self.tables, key=SCALES.index)]


_MANY_FILES: Mapping[str, TableSpec] = {
    "small": Checkpointed(10_000),
    "medium": Checkpointed(100_000),
    "full": Checkpointed(1_000_000),
}
_V2_FILES: Mapping[str, TableSpec] = {
    "small": Checkpointed(10_000, v2=True),
    "medium": Checkpointed(100_000, v2=True),
    "full": Checkpointed(1_000_000, v2=True),
}
_LITTERED: Mapping[str, TableSpec] = {
    "small": Littered(10_000),
    "medium": Littered(100_000),
    "full": Littered(1_000_000),
}
_PLAIN: Mapping[str, TableSpec] = {
    "small": Plain(1_000),
    "medium": Plain(10_000),
    "full": Plain(100_000),
}
_ROWS: Mapping[str, TableSpec] = {"small": Data(400_000), "medium": Data(2_000_000), "full": Data(8_000_000)}
_SMALL_FILES: Mapping[str, TableSpec] = {
    "small": Data(400_000, files=50),
    "medium": Data(2_000_000, files=250),
    "full": Data(8_000_000, files=1_000),
}
_ROWS_OF_PARTITIONS: Mapping[str, TableSpec] = {
    "small": Data(40_000),
    "medium": Data(200_000),
    "full": Data(1_000_000),
}
_DELETED_ROWS: Mapping[str, TableSpec] = {
    scale: Data(spec.rows, deleted_percent=10) for scale, spec in _ROWS.items() if isinstance(spec, Data)
}
_TOOLS = (
    ("Polars", POLARS, OURS_IN_POLARS, DELTALAKE_IN_POLARS),
    ("DuckDB", DUCKDB, OURS_IN_DUCKDB, DELTALAKE_IN_DUCKDB),
)
_MEBI = 1 << 20

CASES = (
    Case(
        name="open-list",
        about="open a table with a classic checkpoint and five commits, list all files",
        operation="open_list",
        setup=setups.table_alone,
        tables=_MANY_FILES,
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open", "ours", "deltalake"),
            Ratio("open", "ours", "delta_kernel"),
            Ratio("open + list", "ours", "deltalake", time=0.07, memory=0.5),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
        limits=(Limit("open", "ours", seconds=0.005), Limit("open + list", "ours", peak_bytes=120 * _MEBI)),
    ),
    Case(
        name="list-held",
        about="the same list as one Arrow table in memory, and the peak growth of the process",
        operation="list_held",
        setup=setups.table_alone,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("held", "ours", "deltalake"),),
        limits=(Limit("held", "ours", heap_bytes=250_000_000),),
    ),
    Case(
        name="replay/1000x500",
        about="as open-list, for 1,000 commits of 500 files each, without a checkpoint",
        operation="open_list",
        setup=setups.table_alone,
        tables={"small": Commits(50, 50), "medium": Commits(200, 500), "full": Commits(1_000, 500)},
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.2),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
        limits=(Limit("open + list", "ours", peak_bytes=200 * _MEBI),),
    ),
    Case(
        name="replay/10000x5",
        about="as open-list, for 10,000 commits of 5 files each, without a checkpoint",
        operation="open_list",
        setup=setups.table_alone,
        tables={"small": Commits(200, 5), "medium": Commits(2_000, 5), "full": Commits(10_000, 5)},
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.13),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
    ),
    Case(
        name="plan",
        about="open, list the files that may match predicates on a partition column and on statistics",
        operation="plan",
        setup=setups.with_predicate,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("plan", "ours", "deltalake", time=0.05),),
    ),
    Case(
        name="refresh",
        about="bring an open table up to date: no new commit, one new commit",
        operation="refresh",
        setup=setups.with_next_commit,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("no-op", "ours", "deltalake"), Ratio("one commit", "ours", "deltalake")),
        limits=(Limit("no-op", "ours", seconds=0.002), Limit("one commit", "ours", seconds=0.005)),
    ),
    Case(
        name="checkpoint",
        about="open the table, and write a classic checkpoint of its newest version",
        operation="checkpoint",
        setup=setups.copied,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("checkpoint", "ours", "deltalake", time=0.4, memory=0.2),),
    ),
    Case(
        name="checkpoint-v2",
        about="write a V2 checkpoint with sidecars, and another one after five commits",
        operation="checkpoint_again",
        setup=setups.with_next_commits,
        tables=_V2_FILES,
        contenders=(OURS,),
        ratios=(),
        limits=(Limit("after five commits", "ours", seconds=0.2),),
    ),
    Case(
        name="vacuum",
        about="find a tenth of the files, which no version needs, by a listing; delete them",
        operation="vacuum",
        setup=setups.littered,
        tables=_LITTERED,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("dry run", "ours", "deltalake", time=0.5),
            Ratio("delete", "ours", "deltalake", time=0.5),
        ),
    ),
    Case(
        name="convert",
        about="make a table of a directory of Parquet files, with the statistics of their footers",
        operation="convert",
        setup=setups.copied,
        tables=_PLAIN,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("convert", "ours", "deltalake", time=0.5),),
    ),
    Case(
        name="statements",
        about="DELETE of 10 %, UPDATE of 1 %, MERGE of 11,340 keys (1 % matched, update and insert); 16 columns",
        operation="statements",
        setup=setups.copied,
        tables=_ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=tuple(
            ratio
            for name in ("delete", "update", "merge")
            for ratio in (
                # `deltalake` does not write deletion vectors.
                Ratio(name, "ours", "deltalake", time=0.3),
                Ratio(f"{name}, rewrite", "ours", "deltalake", peer_measure=name),
            )
        ),
    ),
    Case(
        name="optimize",
        about="join 1,000 files of 8,000 rows of 16 columns as files of 128 MiB",
        operation="optimize",
        setup=setups.copied,
        tables=_SMALL_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("optimize", "ours", "deltalake", time=0.6),),
    ),
    Case(
        name="z-order",
        about="order 8,000,000 rows of 16 columns by four of them, into 100 files",
        operation="z_order",
        setup=setups.copied,
        tables=_ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("z-order", "ours", "deltalake", time=0.5),),
    ),
    Case(
        name="append",
        about="append one row to an open table: the median of the commits between two checkpoints",
        operation="append",
        setup=setups.copied,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("one row", "ours", "deltalake"),
            Ratio("one row, beside a checkpoint", "ours", "deltalake", peer_measure="one row"),
        ),
        limits=(Limit("one row", "ours", seconds=0.005),),
    ),
    Case(
        name="broad",
        about="a table of 10,000 columns against one of 1,000: what is linear takes ten times as long",
        operation="broad",
        setup=setups.copied,
        tables={"small": Broad(100), "medium": Broad(1_000), "full": Broad(1_000)},
        contenders=(OURS,),
        ratios=tuple(
            Ratio(f"{what}, broad", "ours", "ours", time=12.0, peer_measure=f"{what}, narrow")
            for what in ("open", "read one file", "append", "delete", "checkpoint")
        ),
    ),
    Case(
        name="append-threads",
        about="64 threads append single rows to one local table; the mean time of an append",
        operation="append_at_once",
        setup=setups.with_threads,
        tables={"small": Commits(1, 5), "medium": Commits(1, 20), "full": Commits(1, 100)},
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("per append", "ours", "deltalake", time=0.25),),
    ),
    Case(
        name="scan",
        about="the rows as Arrow: one filtered column; all 16 columns, ours with string views and plain strings",
        operation="scan",
        setup=setups.table_alone,
        tables=_ROWS,
        contenders=(OURS, DELTALAKE, POLARS, DUCKDB, ARROW_DATASET),
        ratios=(
            *(
                Ratio(measure, "ours", peer.name, time=1.0)
                for measure in ("filter", "all columns")
                for peer in (DELTALAKE, POLARS, DUCKDB, ARROW_DATASET)
            ),
            # Plain strings must be copied; deltalake and Polars return views.
            *(
                Ratio("all columns, plain strings", "ours", peer.name, peer_measure="all columns")
                for peer in (DELTALAKE, POLARS)
            ),
            *(
                Ratio("all columns, plain strings", "ours", peer.name, time=1.0, peer_measure="all columns")
                for peer in (DUCKDB, ARROW_DATASET)
            ),
        ),
    ),
    *(
        Case(
            name=f"{library.name}-{measure}",
            about=f"{title}: {what} 8,000,000 rows; count and sum of the result",
            operation=f"{measure}_rows",
            setup=setups.table_alone,
            tables=_ROWS,
            contenders=(ours, library, deltalake),
            ratios=(Ratio(measure, "ours", library.name, time=1.0), Ratio(measure, "ours", "deltalake")),
        )
        for title, library, ours, deltalake in _TOOLS
        for measure, what in (
            ("filter", "a filter that selects half of"),
            ("join", "100,000 keys joined with"),
        )
    ),
    *(
        Case(
            name=f"{library.name}-vectors",
            about=f"{title}: the same filter, with a deletion vector on each file that deletes a tenth of its rows",
            operation="filter_rows",
            setup=setups.table_alone,
            tables=_DELETED_ROWS,
            contenders=(ours, deltalake),
            ratios=(Ratio("filter", "ours", "deltalake", time=0.5),),
        )
        for title, library, ours, deltalake in _TOOLS
    ),
    Case(
        name="store-open-list",
        about="as open-list, from a store with 20 ms per request",
        operation="store_open_list",
        setup=setups.in_store_beside_local,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.25),
            Ratio("open + list", "ours", "ours", peer_measure="open + list, local"),
        ),
    ),
    Case(
        name="store-scan",
        about="500 files of 2.75 MB as Arrow, from a store with 20 ms per request and 200 MB/s",
        operation="store_scan",
        setup=setups.in_store,
        tables={"small": Data(400_000, files=20), "full": Data(12_500_000, files=500)},
        contenders=(OURS, DELTALAKE, POLARS),
        ratios=(
            Ratio("all columns", "ours", "deltalake", time=1.0),
            Ratio("all columns", "ours", "polars", time=1.0),
        ),
    ),
    Case(
        name="store-append",
        about="as append, to a table in a store with 20 ms per request",
        operation="store_append",
        setup=setups.in_store,
        tables=_MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("one row", "ours", "deltalake"),),
    ),
    Case(
        name="store-unanswered",
        about="32 writers append 25 rows each, one by one, to a store that loses 10 % of its answers",
        operation="store_unanswered",
        setup=setups.unanswered,
        tables={"small": Commits(1, 5), "full": Commits(1, 25)},
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("appends", "ours", "deltalake"),),
    ),
    Case(
        name="write-rows",
        about="write 8,000,000 rows of 16 columns as a new table: from a stream of Parquet, and from memory",
        operation="write",
        setup=setups.with_target,
        tables=_ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("stream", "ours", "deltalake", time=0.8),
            Ratio("from memory", "ours", "deltalake", time=0.8),
        ),
        limits=(Limit("stream", "ours", peak_bytes=600 * _MEBI),),
    ),
    Case(
        name="write-partitions",
        about="write 1,000,000 rows of 16 columns to 10,000 partitions, in random order",
        operation="write_partitioned",
        setup=setups.with_partitions,
        tables=_ROWS_OF_PARTITIONS,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("partitions", "ours", "deltalake"),),
        limits=(Limit("partitions", "ours", peak_bytes=600 * _MEBI),),
    ),
    Case(
        name="spark-start",
        about="Spark: enable a session that has executed one statement; first and second SELECT and MERGE of a row",
        operation="start",
        setup=setups.with_target,
        tables={"small": Data(400_000)},
        contenders=(START_OURS, START_PARQUET, START_JVM),
        ratios=(
            Ratio("first SELECT", "ours", "parquet"),
            Ratio("second SELECT", "ours", "parquet"),
            Ratio("first MERGE of a row", "ours", "jvm"),
            Ratio("second MERGE of a row", "ours", "jvm"),
        ),
        limits=(Limit("enable", "ours", seconds=1.0),),
    ),
    Case(
        name="spark-scan",
        about="Spark: a filtered sum of one column; all 16 columns",
        operation="scan",
        setup=setups.table_alone,
        tables=_ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM, JVM_PARQUET),
        ratios=tuple(
            ratio
            for measure in ("filter + sum", "all columns")
            for ratio in (
                Ratio(measure, "ours", "parquet", time=1.05),
                Ratio(measure, "jvm", "parquet beside jvm"),
                Ratio(measure, "ours", "jvm"),
            )
        ),
        warm_up=2,
    ),
    Case(
        name="spark-scan-dv",
        about="Spark: the same queries with a deletion vector on every file (10 % deleted), and without",
        operation="scan_vectors",
        setup=setups.table_alone,
        tables=_DELETED_ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM),
        ratios=tuple(
            ratio
            for measure in ("filter + sum", "all columns")
            for ratio in (
                # In a table with deletion vectors, files without one must cost nothing extra.
                Ratio(f"{measure}, without vectors", "ours", "parquet", time=1.05),
                Ratio(
                    f"{measure}, with vectors", "jvm", "parquet", peer_measure=f"{measure}, without vectors"
                ),
                Ratio(
                    f"{measure}, with vectors",
                    "ours",
                    "ours",
                    time=1.25,
                    peer_measure=f"{measure}, without vectors",
                ),
                Ratio(f"{measure}, with vectors", "jvm", "jvm", peer_measure=f"{measure}, without vectors"),
                Ratio(f"{measure}, with vectors", "ours", "jvm", time=0.4),
            )
        ),
        warm_up=2,
    ),
    Case(
        name="spark-write",
        about="Spark: write the 16 columns as a new table",
        operation="write",
        setup=setups.with_target,
        tables=_ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM, JVM_PARQUET),
        ratios=(
            Ratio("write", "ours", "parquet", time=1.10),
            Ratio("write", "jvm", "parquet beside jvm"),
            Ratio("write", "ours", "jvm"),
        ),
        warm_up=1,
    ),
    Case(
        name="spark-statements",
        about="Spark: DELETE of 10 %, UPDATE of 1 %, MERGEs of 11,340 and 500,000 keys; with vectors and by rewriting",
        operation="statements",
        setup=setups.copied_with_target,
        tables=_ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM),
        ratios=(
            Ratio("delete", "ours", "jvm", time=0.15),
            Ratio("delete", "ours", "parquet"),
            Ratio("delete, rewrite", "ours", "jvm", time=0.8),
            Ratio("update", "ours", "jvm", time=0.35),
            Ratio("update", "ours", "parquet", time=1.1),
            Ratio("update, rewrite", "ours", "jvm", time=0.8),
            Ratio("merge", "ours", "jvm", time=0.2),
            Ratio("merge", "ours", "parquet"),
            Ratio("merge, rewrite", "ours", "jvm", time=0.7),
            Ratio("merge, insert only", "ours", "jvm", time=0.15),
            Ratio("merge, delete only", "ours", "jvm", time=0.15),
            Ratio("merge, delete only", "ours", "parquet"),
            Ratio("merge, half of the rows", "ours", "jvm", time=0.8),
            Ratio("merge, half of the rows, rewrite", "ours", "jvm", time=0.8),
        ),
        warm_up=1,
    ),
    Case(
        name="spark-wide-merge",
        about="Spark: MERGE of three rows with 150, 750 and 1,500 columns that are made from one expression",
        operation="wide_merge",
        setup=setups.with_target,
        tables=_PLAIN,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=tuple(Ratio(f"{width} columns", "ours", "jvm") for width in (150, 750, 1500)),
        warm_up=1,
    ),
    Case(
        name="spark-stream",
        about="Spark: streams from table to table, of 500,000 rows in each batch and of ten; each in a new JVM",
        operation="stream",
        setup=setups.with_target,
        tables={"small": Streamed(20, 3, 20_000), "full": Streamed(100, 8, 500_000)},
        contenders=(START_OURS, START_JVM),
        ratios=(
            Ratio("first batch of a session", "ours", "jvm", time=0.4),
            Ratio("large batch", "ours", "jvm", time=0.35),
            Ratio("tiny batch", "ours", "jvm", time=0.2),
        ),
    ),
    Case(
        name="spark-vacuum",
        about="Spark: the same, by VACUUM ... DRY RUN and VACUUM",
        operation="vacuum",
        setup=setups.littered,
        tables=_LITTERED,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("dry run", "ours", "jvm", time=0.3), Ratio("delete", "ours", "jvm", time=0.3)),
        warm_up=1,
    ),
    Case(
        name="spark-optimize",
        about="Spark: the same as optimize, by OPTIMIZE; in the driver, as local sessions do it, and by executors",
        operation="optimize",
        setup=setups.copied,
        tables=_SMALL_FILES,
        contenders=(SPARK_OURS, SPARK_EXECUTORS, SPARK_JVM),
        ratios=(Ratio("optimize", "ours", "jvm", time=0.6), Ratio("optimize", "executors", "jvm")),
        warm_up=1,
    ),
    Case(
        name="spark-z-order",
        about="Spark: the same as z-order, by OPTIMIZE ... ZORDER BY; in the driver, and by executors",
        operation="z_order",
        setup=setups.copied,
        tables=_ROWS,
        contenders=(SPARK_OURS, SPARK_EXECUTORS, SPARK_JVM),
        ratios=(Ratio("z-order", "ours", "jvm", time=0.5), Ratio("z-order", "executors", "jvm")),
        warm_up=1,
    ),
    Case(
        name="spark-convert",
        about="Spark: the same as convert, by CONVERT TO DELTA",
        operation="convert",
        setup=setups.copied,
        tables=_PLAIN,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("convert", "ours", "jvm", time=0.5),),
        warm_up=1,
    ),
    Case(
        name="spark-plan",
        about="Spark: from the path to the files of the tasks, and to the tasks; no filter, first plan",
        operation="plan",
        setup=setups.table_alone,
        tables={"small": Checkpointed(10_000), "full": Checkpointed(100_000)},
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("plan", "ours", "jvm"), Ratio("tasks", "ours", "jvm")),
        limits=(Limit("plan", "ours", seconds=1.0),),
        warm_up=1,
    ),
    Case(
        name="spark-first-plan",
        about="the same, for a million files; growth of the driver's heap",
        operation="plan",
        setup=setups.table_alone,
        tables=_MANY_FILES,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("plan", "ours", "jvm", time=0.1), Ratio("tasks", "ours", "jvm")),
        limits=(Limit("plan", "ours", heap_bytes=8 * _MEBI),),
        warm_up=1,
    ),
)


def named(wanted: str) -> tuple[Case, ...]:
    """Returns the cases that `name` selects: all cases for `all`, the case with this name, or the cases whose names
    begin with `name` and a slash.
    """
    return tuple(case for case in CASES if wanted in ("all", case.name, case.name.split("/")[0]))
